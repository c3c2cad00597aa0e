"""The mathematics of Sluice: text to features, learners, the linear form, the bank. Pure: no I/O, no clock."""
