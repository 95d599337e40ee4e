"""``python -m pytest_sqsq``: the command ``sqsq``."""

import sys

from pytest_sqsq.cli import main

if __name__ == "__main__":
    sys.exit(main())
