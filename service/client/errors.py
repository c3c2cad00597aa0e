"""The errors that the client raises.

* ClientError
  x Unreachable         no reply, or not all of it, after every attempt
  x Refused             the service replied with a problem document (RFC 9457), which is in `problem`
  x UnexpectedReply     the reply is not one that this client knows
"""

import httpx
from pydantic import ValidationError

from service.errors import one_line
from service.schemas import Problem


class ClientError(Exception):
    """A call failed; the message is a sentence for people."""


class Unreachable(ClientError):
    pass


class UnexpectedReply(ClientError):
    def __init__(self) -> None:
        super().__init__("This client does not understand the reply; the service may be of another version.")


class Refused(ClientError):
    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__(one_line(problem.detail, problem.errors or ()))
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        return self.problem.status

    @classmethod
    def from_response(cls, response: httpx.Response) -> "Refused":
        """Reads a response that is not a success. It may come from a proxy, and then is no problem document."""
        try:
            problem = Problem.model_validate_json(response.content)
        except ValidationError:
            status, reason = response.status_code, response.reason_phrase
            problem = Problem(title=reason, status=status, detail=f"The reply was {status} {reason}, not from Sluice.")
        retry_after = response.headers.get("retry-after", "")
        return cls(problem, float(retry_after) if retry_after.isdecimal() else None)
