"""Who a request says it comes from: the credential scope of a SigV4 signature, unverified."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_plus


class Credential(NamedTuple):
    access_key: str | None = None
    region: str | None = None


_HEADER = re.compile(r"Credential=([^\s,]+)")
_PRESIGNED = re.compile(r"(?:^|&)X-Amz-Credential=([^&]+)")
_REGION = re.compile(r"[A-Za-z0-9_-]{1,64}")


def claimed_credential(authorization: str | None, query_string: str) -> Credential:
    """The access key and region of a signed request or a pre-signed URL; never fails.

    What cannot be read is ``None``, and so is a region with characters that could not stand in
    an ARN.
    """
    found = _HEADER.search(authorization) if authorization else _PRESIGNED.search(query_string)
    if found is None:
        return Credential()
    # From the right, since the key is the one part that the client makes up freely.
    parts = (found[1] if authorization else unquote_plus(found[1])).rsplit("/", 4)
    if len(parts) != 5:
        return Credential(parts[0] or None)
    access_key, _date, region, _service, _terminator = parts
    return Credential(access_key or None, region if _REGION.fullmatch(region) else None)
