"""One person after another signs in by a made-up company's issuer, over real HTTP; prints what came of each as JSON.

Run as a program of its own: which providers there are is settled when settings are read. The issuer's words about the person are
given as JSON, one object for each sign-in; its address is in WRITEGATE_OIDC_ISSUER.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from os import environ
from typing import Any
from urllib.parse import parse_qs, urlsplit

ISSUER = environ["WRITEGATE_OIDC_ISSUER"]
claims: dict[str, Any] = {}


class Issuer(BaseHTTPRequestHandler):
    """Answers discovery, the token and the claims; the browser's part is played by the story."""

    def _answer(self, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path.endswith("openid-configuration"):
            ends = {name: f"{ISSUER}/{name}" for name in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint")}
            self._answer({"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys", **ends})
        else:
            self._answer(claims)

    def do_POST(self) -> None:
        given = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        assert given["code_verifier"], "the exchange is bound to the browser that began it"
        self._answer({"access_token": "made-up", "token_type": "Bearer"})

    def log_message(self, *_: Any) -> None:
        pass


def main(wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    import django

    django.setup()
    from django.test import Client
    from django.urls import reverse

    parts = urlsplit(ISSUER)
    server = HTTPServer((str(parts.hostname), int(parts.port or 0)), Issuer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    outcomes = []
    for words in wanted:
        process = words.pop("process", "login")
        claims.clear()
        claims.update(words)
        client = Client(headers={"host": "localhost"})
        assert "Company account" in client.get(reverse("account_login")).content.decode()
        begun = client.post(reverse("openid_connect_login", args=["company"]) + f"?process={process}")
        query = parse_qs(urlsplit(begun["Location"]).query)
        callback = reverse("openid_connect_callback", args=["company"])
        answer = client.get(callback, {"code": "made-up", "state": query["state"][0]})
        home = client.get("/admin/")
        outcomes.append({"issuer": begun["Location"].split("?")[0], "went": answer["Location"], "in": home.status_code == 200})
    server.shutdown()
    return outcomes


if __name__ == "__main__":
    json.dump(main(json.loads(sys.argv[1])), sys.stdout)
