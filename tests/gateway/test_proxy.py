# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Principals whom a proxy names, and where OAuth's clients learn about it."""

import os

from broker import Broker
from gateway import Gateway
from test_gateway import check, check_problem


def try_proxy(gateway):
    """Whom the proxy names is believed with its secret, and with nothing less."""
    secret = {"Taskmq_Proxy_Secret": "a secret of the proxy".replace(" ", "-")}

    def ask(method, target, named, body=None, **more):
        return gateway.ask(method, target, body, token=None, **{"Taskmq_Principal": named, **secret,
                                                                **more})
    made = ask("POST", "/v1/tasks", "zoe", {"queue": "proxied"})
    check("a client", made.status, 201)
    check("its owner", made.json["owner"].split("/")[1], "zoe")
    target = made.fields["location"]
    check("its own", ask("GET", target, "zoe").status, 200)
    check_problem(ask("GET", target, "yan"), 404, "not-found")
    check("another role", ask("GET", target, "yan;roles=observer").status, 200)
    check_problem(ask("POST", "/v1/tasks", "yan;roles=observer", {"queue": "q"}), 403, "denied")
    check_problem(ask("GET", "/v1/tasks", "yan;namespaces=far", Taskmq_Namespace="default"), 403,
                  "denied")
    session = ask("GET", "/v1/session", "yan; roles=observer,metrics; namespaces=default").json
    check("who it is", (session["principal"], session["roles"], session["by"]),
          ("yan", ["observer", "metrics"], "proxy"))
    begun = ask("POST", "/v1/session", "zoe")
    check("no cookie", (begun.status, begun.fields.get("set-cookie")), (200, None))
    for named in ("", "a b", "zoe;roles=king", "zoe;rank=1", "zoe;roles=client;roles=operator",
                  "z" * 65, "zoe;" + "x" * 900):
        check_problem(ask("GET", target, named), 401, "not-authenticated")
    for wrong in ({"Taskmq_Proxy_Secret": "guess-guess-guess-guess"}, {"Taskmq_Proxy_Secret": ""}):
        check_problem(ask("GET", target, "zoe", **wrong), 401, "not-authenticated")
    check_problem(gateway.get(target, token=None, Taskmq_Principal="zoe"), 401, "not-authenticated")
    check_problem(gateway.get(target, token=None, **secret), 401, "not-authenticated")
    # What a browser was made to do by another page is not what zoe does.
    check_problem(ask("GET", target, "zoe", Sec_Fetch_Site="cross-site"), 401, "not-authenticated")
    check_problem(ask("POST", target + "/cancel", "zoe", Sec_Fetch_Site="same-origin"), 401,
                  "not-authenticated")
    check("our page", ask("POST", target + "/cancel", "zoe", Sec_Fetch_Site="same-origin",
                          X_Taskmq_Request="1").status, 200)
    assert "a-secret-of-the-proxy" not in gateway.read_log()
    # Where a token comes from is said to who has none.
    for asked, path in (("/v1/tasks", ""), ("/mcp", "/mcp")):
        refused = gateway.ask("POST", asked, {}, token=None, Host="tasks.example")
        where = "https://tasks.example/.well-known/oauth-protected-resource" + path
        check("where", refused.fields["www-authenticate"],
              f'Bearer realm="taskmq", resource_metadata="{where}"')
        told = gateway.get(where.replace("https://tasks.example", ""), token=None,
                           Host="tasks.example").json
        check("told", (told["resource"], told["authorization_servers"]),
              ("https://tasks.example" + path, ["https://login.example"]))
    with open(gateway.path("secret"), "w", encoding="utf-8") as file:
        file.write("another-secret-of-the-proxy\n")
    gateway.reload()
    check_problem(ask("GET", target, "zoe"), 401, "not-authenticated")
    secret["Taskmq_Proxy_Secret"] = "another-secret-of-the-proxy"
    check("the new secret", ask("GET", target, "zoe").status, 200)
    # Nobody is forgotten while a request is under way, and the others may come as many as they are.
    for number in range(1200):
        check("one of many", ask("GET", "/v1/session", f"p{number}").status, 200)


def main():
    with Broker() as broker:
        secret = os.path.join(broker.data, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("a-secret-of-the-proxy\n")
        os.chmod(secret, 0o600)
        words = [f"proxy_secret_file = {secret}", "authorization_server = https://login.example",
                 "host = tasks.example", "behind_proxy = yes", "failures_max = 1000"]
        with Gateway(broker, configuration=words) as gateway:
            try_proxy(gateway)
        for flaw, line in (("short", None), (None, "proxy_secret_file = secret"),
                           (None, "authorization_server = login.example")):
            if flaw:
                with open(secret, "w", encoding="utf-8") as file:
                    file.write(flaw)
            checked = Gateway(broker, configuration=[line or words[0]]).run("--check")
            check("--check", checked.returncode, 2)
        os.chmod(secret, 0o644)
        readable = Gateway(broker, configuration=words[:1]).run("--check")
        check("others may read it", (readable.returncode, "chmod 600" in readable.stderr), (2, True))
    # Without a secret the field is nobody's word.
    with Broker() as broker, Gateway(broker) as gateway:
        check_problem(gateway.get("/v1/tasks", token=None, Taskmq_Principal="zoe"), 401,
                      "not-authenticated")
        check("the field alone", gateway.get("/v1/session", Taskmq_Principal="zoe").json["principal"],
              "local")
        check_problem(gateway.get("/.well-known/oauth-protected-resource", token=None), 404,
                      "not-found")


if __name__ == "__main__":
    main()
