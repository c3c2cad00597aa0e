"""What is made of the figures of a benchmark.

    requirements.py  what they should be, and which of them are reached
    report.py        tables
    plots.py         pictures

Nothing is measured here.
"""
