"""A stand-in for the service where only its processes matter: an application, and, run as a module, a housekeeper."""

import asyncio
import os
import signal
import threading
from typing import Any

# For tests that run the application in a thread: a request to /hold has arrived, and is answered when `let_go` is set;
# the response of /flood has been read, or the client has left.
arrived, let_go, flooded = threading.Semaphore(0), threading.Event(), threading.Event()


def create_app() -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        path = scope["path"]
        answer = str(os.getpid())
        if path == "/refuse":  # answers before it has read the body
            answer = "too much"
        elif path == "/flood":  # more than a socket buffers
            answer = "flood" * 20_000_000
        elif path == "/hold":
            arrived.release()
            await asyncio.to_thread(let_go.wait)
        elif path == "/environment":
            answer = " ".join(f"{name}={value}" for name, value in os.environ.items() if name.startswith("SLUICE_"))
        else:
            length = 0
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                length += len(message["body"])
                if path == "/ponder" and length == len(message["body"]):  # meanwhile the client cannot send more
                    await asyncio.sleep(2.5)
                if not message["more_body"]:
                    break
            if path == "/length":
                answer = str(length)
        body = answer.encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body"})  # once the rest is in the socket's buffer
        if path == "/flood":
            flooded.set()

    return app


def never_ready() -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(10)  # a server that gets a signal waits for it

    return app


def main() -> None:
    print("housekeeper", os.getpid(), flush=True)
    signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main()
