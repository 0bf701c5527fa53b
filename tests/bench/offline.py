"""What an offline bundle costs: made with N grants, asked for again while nothing changed, and read by an enforcement point.

`python -m tests.bench.offline N`.
"""

import sys
import time

from tests.bench.database import measured, prepare
from tests.support.memory import high_mark

ASKED_AGAIN = 20
CHECKED = 200


def _work(grants: int) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    from compliance.client.offline import Bundle
    from compliance.ledger.offline import seal_statement
    from compliance.ledger.opa import read_signer, write_archive
    from compliance.services.sealing import keyring, seal
    from policies.models import System
    from tests.bench.crowd import many_grants
    from tests.support import signing
    from tests.support.asking import ask_token
    from tests.support.offline import bundle_for

    land = signing.ground()
    signing.granted(land)
    many_grants(grants, 1)
    token = ask_token(land.asker)
    seal()
    system = System.objects.get(key="system-0")
    before = high_mark()

    def work() -> str:
        bundle = bundle_for(token, system)
        grown = high_mark() - before
        started = time.perf_counter()
        for _ in range(ASKED_AGAIN):
            bundle_for(token, system)
        again = (time.perf_counter() - started) / ASKED_AGAIN
        key = keyring().current
        sealed = seal_statement(bytes(bundle.payload), key)
        started = time.perf_counter()
        pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        archive = write_archive(bytes(bundle.payload), read_signer(pem))
        packed = time.perf_counter() - started
        started = time.perf_counter()
        held = Bundle.verified(sealed, system=system.key, keys=[key.verifier])
        read = time.perf_counter() - started
        started = time.perf_counter()
        allowed = [bool(held.check(f"subject-{number}", type="model")) for number in range(1, CHECKED + 1)]
        checked = (time.perf_counter() - started) / CHECKED
        if not all(allowed) or bundle.lines != grants:
            raise AssertionError(f"{bundle.lines} lines of {grants}, {sum(allowed)} of {CHECKED} allowed")
        return (
            f"{bundle.lines:,} lines, {len(sealed) / 2**20:.1f} MB, {grown:.0f} MB more; asked again {again * 1e3:.1f} ms; "
            f"for OPA {packed:.2f} s, {len(archive) / 2**20:.1f} MB; read {read:.2f} s, a check {checked * 1e6:.0f} µs"
        )

    measured(grants, work)


if __name__ == "__main__":
    prepare()
    _work(int(sys.argv[1]))
