"""A small HTTP service that nobody here measures for its speed: PUT, GET and DELETE of ``/<key>`` in a
directory, and ways to misbehave.

foreign.py PORT DIR [daemonise | ignores-term | forgets | says-it-early | keeps-a-helper | dies-when-asked
                    | answers-400 | answers-404 | answers-500 | answers-503]
"""

import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT, FOLDER, FAULTS = int(sys.argv[1]), Path(sys.argv[2]) / "records", set(sys.argv[3:])


METRICS = """# TYPE requests_total counter
requests_total{{method="PUT",note="a, \\"b\\""}} {PUT}
requests_total{{method="GET"}} {GET}
# TYPE latency histogram
latency_bucket{{le="0.1"}} 3
latency_bucket{{le="+Inf"}} 3
latency_sum 0.2
latency_count 3
# TYPE unknown gauge
unknown NaN
"""


class Records(BaseHTTPRequestHandler):
    protocol_version, wbufsize = (
        "HTTP/1.1",
        -1,
    )  # one packet per answer, so that no delayed acknowledgement is waited for

    answered = {"PUT": 0, "GET": 0, "DELETE": 0}

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "dies-when-asked" in FAULTS:
            os.write(2, b"not today\n")
            os._exit(3)
        if "forgets" not in FAULTS:
            self.file().write_bytes(body)
        self.answer(201)

    def do_GET(self):
        if self.path == "/health":
            return self.answer(200)
        if self.path == "/metrics":
            return self.answer(200, METRICS.format(**self.answered).encode())
        file = self.file()
        return self.answer(200, file.read_bytes()) if file.is_file() else self.answer(404)

    def do_DELETE(self):
        self.file().unlink(missing_ok=True)
        self.answer(204)

    def file(self) -> Path:
        return FOLDER / self.path.strip("/").replace("/", "_")

    def answer(self, status: int, body: bytes = b""):
        self.answered[self.command] += 1
        self.send_response(next((one for one in (400, 404, 500, 503) if f"answers-{one}" in FAULTS), status))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128


FOLDER.mkdir(exist_ok=True)
if "daemonise" in FAULTS and os.fork():
    os._exit(0)
if "daemonise" in FAULTS:
    os.setsid()
if "ignores-term" in FAULTS:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "keeps-a-helper" in FAULTS:
    helper = subprocess.Popen(["sleep", "100"], start_new_session=True)
    FOLDER.with_name("helper").write_text(str(helper.pid))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0 if helper.poll() is None else 3))
if "says-it-early" in FAULTS:
    print(f"serving on port {PORT}", flush=True)
    time.sleep(0.5)
server = Server(("127.0.0.1", PORT), Records)
print(f"serving on port {PORT}", flush=True)
server.serve_forever()
