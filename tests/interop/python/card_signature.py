"""Verifies a signed card with PyPI `a2a-sdk` 1.x, and by the rules of RFC 7515 and 8785."""

import argparse
import asyncio
import copy
import json
import sys

import httpx
import jwt
from a2a.client.card_resolver import A2ACardResolver, parse_agent_card
from a2a.utils._jcs import canonicalize
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.api_jwk import PyJWK
from jwt.utils import base64url_encode


def make_key(path: str, form: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    forms = {"sec1": serialization.PrivateFormat.TraditionalOpenSSL, "pkcs8": serialization.PrivateFormat.PKCS8}
    pem = key.private_bytes(serialization.Encoding.PEM, forms[form], serialization.NoEncryption())
    with open(path, "wb") as file:
        file.write(pem)


def sdk_accepts(card: dict, keys: dict[str, PyJWK]) -> bool:
    verify = create_signature_verifier(lambda kid, jku: keys[kid], ["ES256"])
    try:
        verify(parse_agent_card(copy.deepcopy(card)))
    except SignatureVerificationError:
        return False
    return True


def covers_document(card: dict, keys: dict[str, PyJWK]) -> bool:
    """Whether a signature covers the document as it was served."""
    payload = canonicalize({name: value for name, value in card.items() if name != "signatures"})
    payload = base64url_encode(payload.encode()).decode()
    for one in card["signatures"]:
        kid = jwt.get_unverified_header(f"{one['protected']}.e30.{one['signature']}")["kid"]
        try:
            jwt.decode(f"{one['protected']}.{payload}.{one['signature']}", keys[kid], algorithms=["ES256"])
            return True
        except jwt.PyJWTError:
            continue
    return False


def spoiled(card: dict):
    """The card with one thing changed: what, how, and whether 1.0 knows the member."""
    for member, known in (("name", True), ("description", True), ("protocolVersion", False), ("preferredTransport", False)):
        if member in card:
            yield member, {**card, member: card[member][:-1] + "~"}, known
    other = copy.deepcopy(card)
    other["capabilities"]["streaming"] = not other["capabilities"]["streaming"]
    yield "capabilities.streaming", other, True
    other = copy.deepcopy(card)
    other["skills"].pop()
    yield "skills", other, True
    other = copy.deepcopy(card)
    for one in other["signatures"]:
        one["signature"] = ("A" if one["signature"][0] != "A" else "B") + one["signature"][1:]
    yield "signatures", other, True


def make_difficult(signed: str, path: str) -> None:
    """Writes the card with the values on which canonical forms have differed (A2A#2122)."""
    with open(signed, encoding="utf-8") as file:
        card = json.load(file)
    del card["signatures"]
    card["name"] = "Übersetzer 翻訳 👩‍🚀"
    card["description"] = "e\u0301 is not é; \u2028 \u007f \u0001 \" \\ / \b\t\n\f\r are strings."
    skill = card["skills"][0]
    skill["name"], skill["tags"] = "Größe", ["ſ", "ﬀ", "𝒳", "\ue000"]
    card["capabilities"].setdefault("extensions", []).append({
        "uri": "urn:example:values",
        "params": {
            "€": 1, "\r": 2, "דּ": 3, "1": 4, "😀": 5, "\u0080": 6, "ö": 7, "": 8,
            "numbers": [0, -0.0, 0.1, 1e21, 1e-7, 123456789012345680000, 4.5, 2e-3, 1.5e300, -1],
            "nested": {"empty": {}, "list": [], "literals": [None, True, False], "deep": [[[{"b": 1, "a": 2}]]]},
        },
    })
    with open(path, "w", encoding="utf-8") as file:
        json.dump(card, file, ensure_ascii=False)


async def check(base: str, jwks: str) -> list[str]:
    with open(jwks) as file:
        keys = {key["kid"]: PyJWK(key) for key in json.load(file)["keys"]}
    async with httpx.AsyncClient(timeout=30) as client:
        verify = create_signature_verifier(lambda kid, jku: keys[kid], ["ES256"])
        # Raises if the signature is invalid.
        await A2ACardResolver(client, base).get_agent_card(signature_verifier=verify)
        card = (await client.get(f"{base}/.well-known/agent-card.json")).json()
    faults = [] if covers_document(card, keys) else ["no signature covers the document"]
    for what, other, known in spoiled(card):
        if known and sdk_accepts(other, keys):
            faults.append(f"the SDK accepts another {what}")
        if covers_document(other, keys):
            faults.append(f"a signature covers another {what}")
    stranger = ec.generate_private_key(ec.SECP256R1()).public_key()
    jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(stranger))
    if sdk_accepts(card, dict.fromkeys(keys, PyJWK(jwk, algorithm="ES256"))):
        faults.append("the SDK accepts it under another key")
    return faults


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--make-key", metavar="FILE")
    arguments.add_argument("--form", choices=["sec1", "pkcs8"], default="pkcs8")
    arguments.add_argument("--make-difficult", nargs=2, metavar=("SIGNED", "FILE"))
    arguments.add_argument("--base")
    arguments.add_argument("--jwks", metavar="FILE")
    chosen = arguments.parse_args()
    if chosen.make_key:
        make_key(chosen.make_key, chosen.form)
    elif chosen.make_difficult:
        make_difficult(*chosen.make_difficult)
    else:
        found = asyncio.run(check(chosen.base.rstrip("/"), chosen.jwks))
        print("\n".join(found))
        sys.exit(1 if found else 0)
