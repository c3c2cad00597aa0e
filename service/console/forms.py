"""What a form sends: fields with their values, bounded as other bodies are."""

from urllib.parse import parse_qsl

from fastapi import Request

from service.api.bodies import body, media_type
from service.config import Config
from service.errors import BadInput, BadRequest

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 2000


class Form:
    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    @classmethod
    async def read(cls, request: Request, config: Config) -> "Form":
        media_type(request, FORM)
        raw = await body(request, config.max_body_bytes)
        try:
            return cls(parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
        except ValueError:
            raise BadRequest("This form cannot be read: it is not UTF-8, or has too many fields.") from None

    def all(self, name: str) -> list[str]:
        return [value for field, value in self._pairs if field == name]

    def one(self, name: str) -> str:
        """The value of a field that must be there."""
        if (value := self.get(name)) is None:
            raise BadInput(f"The form lacks the field {name}.")
        return value

    def get(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)
