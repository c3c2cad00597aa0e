"""What the command line can ask of a running service. Modules here load quickly: the client is imported when it is
used, for `sluice serve --help` needs none of it.

    exit code 0   done
              1   refused or failed, or some lines were; a sentence on stderr says why
              2   the command was not written as it should be
"""
