"""The public keys with which load balancers sign: AWS gives each under its id, in each region.

A key is asked for once and kept. Somebody who can reach the console around its load balancer could
make up ids of keys, so only a few keys are kept, and only a few are asked for in a minute.
"""

import http.client
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from roundsman_console.faces.web.access.identity import NotSignedIn

MOST_KEPT = 8
"""The number of keys that are kept. A load balancer has one at a time, and changes it rarely."""
MOST_ASKED = 10
"""The number of keys that are asked for in a minute."""
MINUTE = 60.0  # seconds
SECONDS = 3.0
"""How long the server of the keys may take."""
LARGEST_KEY = 2_000  # bytes; such a key has some 180

Connect = Callable[[], http.client.HTTPConnection]


def keys_of_region(region: str) -> Connect:
    """Return how to connect to the server of the keys of a region of AWS."""
    host = f"public-keys.auth.elb.{region}.amazonaws.com"
    return lambda: http.client.HTTPSConnection(host, timeout=SECONDS)


class IdentityKeys:
    """The keys of one region. Threads may share it."""

    def __init__(self, connect: Connect, clock: Callable[[], float]) -> None:
        """`clock` returns seconds that never go back."""
        self._connect = connect
        self._clock = clock
        self._keys: OrderedDict[str, ec.EllipticCurvePublicKey] = OrderedDict()
        self._asked_at: deque[float] = deque(maxlen=MOST_ASKED)
        self._lock, self._asking = Lock(), Lock()

    def key_of(self, key_id: str) -> ec.EllipticCurvePublicKey:
        """Return the key with this id, which is a UUID.

        Raises NotSignedIn if there is no such key, if its server does not answer, or if too many
        keys were asked for.
        """
        found = self._known(key_id)
        if found is None:
            with self._asking:  # a page asks for all of its files at once: the key is read once
                found = self._known(key_id) or self._ask(key_id)
        return found

    def _known(self, key_id: str) -> ec.EllipticCurvePublicKey | None:
        with self._lock:
            if key_id in self._keys:
                self._keys.move_to_end(key_id)
            return self._keys.get(key_id)

    def _ask(self, key_id: str) -> ec.EllipticCurvePublicKey:
        at = self._clock()
        if len(self._asked_at) == MOST_ASKED and at - self._asked_at[0] < MINUTE:
            raise NotSignedIn(f"more than {MOST_ASKED} keys were asked for in a minute")
        self._asked_at.append(at)
        found = _read_key(self._fetched(key_id))
        with self._lock:
            self._keys[key_id] = found
            while len(self._keys) > MOST_KEPT:
                self._keys.popitem(last=False)
        return found

    def _fetched(self, key_id: str) -> bytes:
        connection = self._connect()
        try:
            connection.request("GET", f"/{key_id}")
            answer = connection.getresponse()
            text = answer.read(LARGEST_KEY + 1)
        except (OSError, http.client.HTTPException) as error:
            raise NotSignedIn(
                "the server of the keys does not answer; the console needs a way to it"
            ) from error
        finally:
            connection.close()
        if answer.status != 200 or len(text) > LARGEST_KEY:
            raise NotSignedIn("the server of the keys has no such key")
        return text


def _read_key(text: bytes) -> ec.EllipticCurvePublicKey:
    try:
        key = load_pem_public_key(text)
    except ValueError as error:
        raise NotSignedIn("the server of the keys has no such key") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise NotSignedIn("the key of the identity is not for ES256")
    return key
