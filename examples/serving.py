# %% [markdown]
# # How do I serve a model over HTTP?
#
# A model answers for one row, a dict of Python values, in well under a millisecond. This service
# needs nothing but Python's standard library. A request that does not fit the model gets status
# 422 and what is wrong with it; every other one gets a label, its probability and the reasons.

# %%
import json
import threading
import urllib.error
import urllib.request
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

import jaxrules as jr

random = np.random.default_rng(0)
applicants = {
    "income": random.integers(15, 120, 600),
    "late payments": random.poisson(0.7, 600),
    "home": random.choice(["owned", "rented", "parents"], 600),
}
risk = (
    0.5 * applicants["late payments"] - applicants["income"] / 30 + (applicants["home"] == "rented")
)
defaulted = np.where(risk + random.logistic(size=600) > 0, "default", "repaid")
model = jr.boosting.fit(jr.as_table(applicants), defaulted, max_rules=4).model
print(model)

# %% [markdown]
# ## The answer to one request
#
# `jr.explain` gives the prediction together with its reasons. The library refuses what the model
# cannot read (a lacking column, a number that is text, a missing value) with a `ValueError` or a
# `TypeError` that names the column; the service passes these words on. A category that fit
# did not see causes a warning; for a service it is an error.


# %%
warnings.filterwarnings("error", message="column .* has none of the categories in fit")


def answer(body: bytes) -> tuple[int, dict]:
    """The status and the content for one request."""
    try:
        (found,) = jr.explain(model, [json.loads(body)])
    except (ValueError, TypeError, UserWarning) as error:
        return 422, {"error": str(error)}
    reasons = [
        {"rule": part.text, "weight": round(float(part.weight[0]), 4)} for part in found.parts
    ]
    shares = {str(label): round(share, 4) for label, share in (found.probabilities or {}).items()}
    return 200, {"prediction": found.prediction, "probabilities": shares, "reasons": reasons}


class Service(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        status, content = answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No line per request."""


# %% [markdown]
# ## Start it, and ask
#
# Models are immutable, so that threads can share one.

# %%
server = ThreadingHTTPServer(("127.0.0.1", 0), Service)  # any free port
threading.Thread(target=server.serve_forever, daemon=True).start()


def ask(content: object) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.server_port}/", json.dumps(content).encode()
    )
    try:
        with urllib.request.urlopen(request) as reply:
            print(reply.status, json.dumps(json.load(reply), indent=1))
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["error"])


applicant = {"income": 24, "late payments": 2, "home": "rented"}
ask(applicant)

# %% [markdown]
# Requests that the model refuses:

# %%
ask({"income": 24, "home": "rented"})
ask(applicant | {"income": "24 000"})
ask(applicant | {"income": None})
ask(applicant | {"home": "Rented"})
ask("not a row")

# %%
server.shutdown()
server.server_close()
