"""What the client raises.

* ClientError
  x Unreachable         nobody answered, however often we asked
  x Refused             the service answered with a problem document (RFC 9457), which is in `problem`
  x Strange             the answer is none that this client knows
"""

import httpx
from pydantic import ValidationError

from service.errors import one_line
from service.schemas import Problem


class ClientError(Exception):
    """Something that was asked did not come about; the message is a sentence."""


class Unreachable(ClientError):
    pass


class Strange(ClientError):
    def __init__(self) -> None:
        super().__init__("The answer is none that this client knows; the service may be of another version.")


class Refused(ClientError):
    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__(one_line(problem.detail, problem.errors or ()))
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        return self.problem.status

    @classmethod
    def of(cls, answer: httpx.Response) -> "Refused":
        """What an answer that is not a success says; something in between may have given it, in words of its own."""
        try:
            problem = Problem.model_validate_json(answer.content)
        except ValidationError:
            said = f"The answer was {answer.status_code} {answer.reason_phrase}, and not from Sluice."
            problem = Problem(title=answer.reason_phrase, status=answer.status_code, detail=said)
        after = answer.headers.get("retry-after", "")
        return cls(problem, float(after) if after.isdecimal() else None)
