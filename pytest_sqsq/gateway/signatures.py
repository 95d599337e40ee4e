"""Checking SigV4 signatures, with botocore's own signer.

The signature is checked and never the date: a test's clock is its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hmac import compare_digest
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from pytest_sqsq.errors import AccessDenied, IncompleteSignature, InvalidSignature
from pytest_sqsq.protocol import Call, HttpRequest

ALGORITHM = "AWS4-HMAC-SHA256"

_FIELD = re.compile(r"(Credential|SignedHeaders|Signature)=([^\s,]+)")
_PRESIGNED = ("X-Amz-Credential", "X-Amz-SignedHeaders", "X-Amz-Signature", "X-Amz-Date")


class Claim(NamedTuple):
    """What a signed request says about its signature."""

    credential: str
    signed_headers: str
    signature: str
    timestamp: str
    is_presigned: bool


class SignatureCheck:
    """Refuses requests whose signature was not made with the secret key.

    Any access key is taken, since it names the caller's account only.  To be called with each
    decoded request; raises ``AccessDenied`` for an unsigned one, ``IncompleteSignature`` for a
    malformed signature, ``InvalidSignature`` for a wrong one (semantics: the developer guide's
    page on request signing).
    """

    def __init__(self, secret_key: str) -> None:
        self._secret_key = secret_key

    def __call__(self, request: HttpRequest, call: Call) -> None:
        claim = _claim_of(request)
        if not compare_digest(self._signature_for(request, claim), claim.signature):
            raise InvalidSignature(
                "The request signature we calculated does not match the signature you provided."
                " Check your AWS Secret Access Key and signing method."
                " Consult the service documentation for details."
            )

    def _signature_for(self, request: HttpRequest, claim: Claim) -> str:
        access_key, date, region, service, terminator = _scope(claim)
        if terminator != "aws4_request" or not claim.timestamp.startswith(date):
            raise IncompleteSignature(f"'{claim.credential}' is not a valid credential scope.")
        signer = SigV4QueryAuth if claim.is_presigned else SigV4Auth
        auth = signer(Credentials(access_key, self._secret_key), service, region)
        signed = _signed_request(request, claim)
        return str(
            auth.signature(auth.string_to_sign(signed, auth.canonical_request(signed)), signed)
        )


def _scope(claim: Claim) -> list[str]:
    parts = claim.credential.rsplit("/", 4)
    if len(parts) != 5 or not all(parts):
        raise IncompleteSignature(
            f"Credential must have exactly 5 slash-delimited elements, got: '{claim.credential}'."
        )
    return parts


def _claim_of(request: HttpRequest) -> Claim:
    authorization = request.headers.get("authorization")
    if authorization is not None:
        return _claim_of_header(authorization, request.headers)
    query = dict(parse_qsl(request.query_string, keep_blank_values=True))
    if "X-Amz-Signature" not in query and "X-Amz-Credential" not in query:
        raise AccessDenied("Request is missing Authentication Token.")
    missing = [name for name in _PRESIGNED if not query.get(name)]
    if missing:
        raise IncompleteSignature(f"The query string requires '{missing[0]}' parameter.")
    credential, signed_headers, signature, timestamp = (query[name] for name in _PRESIGNED)
    return Claim(credential, signed_headers, signature, timestamp, is_presigned=True)


def _claim_of_header(authorization: str, headers: Mapping[str, str]) -> Claim:
    fields = dict(_FIELD.findall(authorization))
    for name in ("Credential", "SignedHeaders", "Signature"):
        if not authorization.startswith(ALGORITHM) or name not in fields:
            raise IncompleteSignature(
                f"Authorization header requires '{name}' parameter."
                f" Authorization={authorization:.200}"
            )
    timestamp = headers.get("x-amz-date")
    if timestamp is None:
        raise IncompleteSignature(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
        )
    return Claim(
        fields["Credential"],
        fields["SignedHeaders"],
        fields["Signature"],
        timestamp,
        is_presigned=False,
    )


def _signed_request(request: HttpRequest, claim: Claim) -> AWSRequest:
    query = request.query_string
    body = request.body
    if claim.is_presigned:
        pairs = parse_qsl(query, keep_blank_values=True)
        query = urlencode([(name, value) for name, value in pairs if name != "X-Amz-Signature"])
        # A signer moves all parameters into the URL and signs an empty body.
        body = b""
    host = request.headers.get("host", "")
    signed = AWSRequest(
        method=request.method,
        url=f"http://{host}{request.path}" + (f"?{query}" if query else ""),
        data=body,
    )
    for name in claim.signed_headers.split(";"):
        if name in request.headers:
            signed.headers[name] = request.headers[name]
    signed.context["timestamp"] = claim.timestamp
    return signed
