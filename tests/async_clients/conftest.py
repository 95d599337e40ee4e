"""aiobotocore and aioboto3 against the fixtures, on the event loops that there are.

They pin an older botocore than the other tests use, so ``tox -e async-clients`` installs them into
an environment of their own; where they are missing there are no tests here.
"""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("aioboto3") else ["test_*.py"]
