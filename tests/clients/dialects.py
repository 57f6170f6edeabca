"""The wire formats in which clients ask a model: what a request offers, and how an answer is written."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["DIALECTS", "Answer", "Dialect", "ToolCall", "dialect_of"]

DONE: Final = "Done."
_NUMBERS: Final = itertools.count(1)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that the model asks for."""

    name: str  # "editledger:TOOL": a tool of our server, by whatever name the client gives it
    given: Mapping[str, Any] | str  # a text for tools that take one

    def is_offered(self, tools: Sequence[str]) -> bool:
        """Return whether a request offers the tool, if it is one of our server's."""
        return ":" not in self.name or self.offered_as(tools) in tools

    def offered_as(self, tools: Sequence[str]) -> str:
        """Return the name under which a request offers the tool."""
        server, _, own = self.name.partition(":")
        if not own:
            return self.name
        return next((tool for tool in tools if server in tool and tool.endswith(own)), f"{server}_{own}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back: one JSON document, or events of a stream."""

    document: Json | None = None
    events: Sequence[Json | str] = ()
    are_named: bool = False  # whether each event has a line with its type


class Dialect:
    """One wire format."""

    def tools(self, asked: Json) -> list[str]:
        """Return the names of the tools that a request offers; nothing: it is not the agent's own."""
        raise NotImplementedError

    def answer(self, asked: Json, calls: Sequence[ToolCall], *, streams: bool) -> Answer:
        """Return the answer that asks for some tools, or else ends the turn."""
        raise NotImplementedError


class AnthropicMessages(Dialect):
    """Claude Code's."""

    def tools(self, asked: Json) -> list[str]:
        return [tool.get("name", "") for tool in asked.get("tools", [])]

    def answer(self, asked: Json, calls: Sequence[ToolCall], *, streams: bool) -> Answer:
        offered = self.tools(asked)
        parts: list[Json] = [
            {"type": "tool_use", "id": f"toolu_{next(_NUMBERS)}", "name": call.offered_as(offered), "input": call.given}
            for call in calls
        ] or [{"type": "text", "text": DONE}]
        stop = "tool_use" if calls else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{next(_NUMBERS)}", "type": "message", "role": "assistant", "model": asked.get("model")}
        message |= {"content": parts, "stop_reason": stop, "stop_sequence": None, "usage": usage}
        if not streams:
            return Answer(document=message)
        begun: Json = {**message, "content": [], "stop_reason": None}
        events: list[Json | str] = [{"type": "message_start", "message": begun}]
        for index, part in enumerate(parts):
            events += self._part(index, part)
        events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 1}})
        return Answer(events=[*events, {"type": "message_stop"}], are_named=True)

    @staticmethod
    def _part(index: int, part: Json) -> Iterator[Json]:
        if part["type"] == "text":
            begun, delta = {**part, "text": ""}, {"type": "text_delta", "text": part["text"]}
        else:
            begun = {**part, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


class OpenAIResponses(Dialect):
    """Codex's. A tool of an MCP server is offered in a namespace of its server's name."""

    def tools(self, asked: Json) -> list[str]:
        found = []
        for tool in asked.get("tools", []):
            inner = [f"{tool.get('name')}/{each.get('name')}" for each in tool.get("tools") or []]
            found += inner or [tool.get("name") or tool.get("type")]
        return found

    def answer(self, asked: Json, calls: Sequence[ToolCall], *, streams: bool) -> Answer:
        items = [self._item(asked, call) for call in calls] or [self._words()]
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
        response = {"id": f"resp_{next(_NUMBERS)}", "object": "response", "created_at": 1, "model": asked.get("model")}
        response |= {"output": items, "status": "completed", "usage": usage}
        if not streams:
            return Answer(document=response)
        begun: Json = {**response, "output": [], "status": "in_progress", "usage": None}
        events: list[Json | str] = [{"type": "response.created", "response": begun}]
        for index, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        return Answer(events=[*events, {"type": "response.completed", "response": response}], are_named=True)

    @staticmethod
    def _words() -> Json:
        content = [{"type": "output_text", "text": DONE, "annotations": []}]
        return {"type": "message", "id": f"msg_{next(_NUMBERS)}", "role": "assistant", "content": content}

    def _item(self, asked: Json, call: ToolCall) -> Json:
        number = next(_NUMBERS)
        namespace, _, name = call.offered_as(self.tools(asked)).rpartition("/")
        common = {"call_id": f"call_{number}", "name": name, "status": "completed"}
        if isinstance(call.given, str):
            return {"type": "custom_tool_call", "id": f"ctc_{number}", "input": call.given, **common}
        item = {"type": "function_call", "id": f"fc_{number}", "arguments": json.dumps(call.given), **common}
        return item | ({"namespace": namespace} if namespace else {})


class ChatCompletions(Dialect):
    """opencode's and Copilot's."""

    def tools(self, asked: Json) -> list[str]:
        return [tool.get("function", {}).get("name", "") for tool in asked.get("tools", [])]

    def answer(self, asked: Json, calls: Sequence[ToolCall], *, streams: bool) -> Answer:
        offered = self.tools(asked)
        message: Json = {"role": "assistant", "content": None if calls else DONE}
        if calls:
            message["tool_calls"] = [
                {
                    "index": index,
                    "id": f"call_{next(_NUMBERS)}",
                    "type": "function",
                    "function": {"name": call.offered_as(offered), "arguments": json.dumps(call.given)},
                }
                for index, call in enumerate(calls)
            ]
        end = "tool_calls" if calls else "stop"
        head = {"id": f"chat_{next(_NUMBERS)}", "created": 1, "model": asked.get("model")}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not streams:
            choice = {"index": 0, "message": message, "finish_reason": end}
            return Answer(document={**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        head["object"] = "chat.completion.chunk"
        said = {"index": 0, "delta": message, "finish_reason": None}
        over = {"index": 0, "delta": {}, "finish_reason": end}
        return Answer(events=[{**head, "choices": [said]}, {**head, "choices": [over], "usage": usage}, "[DONE]"])


class GeminiContents(Dialect):
    """Gemini CLI's. It also asks for JSON of a given schema, which is no request of the agent's."""

    def tools(self, asked: Json) -> list[str]:
        return [each["name"] for tool in asked.get("tools", []) for each in tool.get("functionDeclarations", [])]

    def answer(self, asked: Json, calls: Sequence[ToolCall], *, streams: bool) -> Answer:
        offered = self.tools(asked)
        parts: list[Json] = [
            {"functionCall": {"id": f"call_{next(_NUMBERS)}", "name": call.offered_as(offered), "args": call.given}}
            for call in calls
        ] or [{"text": self._text(asked.get("generationConfig", {}))}]
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        document = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted", "responseId": "r"}
        return Answer(events=[document]) if streams else Answer(document=document)

    @staticmethod
    def _text(wanted: Json) -> str:
        schema = wanted.get("responseJsonSchema") or wanted.get("responseSchema") or {}
        values = {"string": "user", "number": 10, "integer": 10, "boolean": False}
        members = (schema.get("properties") or {}).items()
        said = {name: (of.get("enum") or [values.get(str(of.get("type")).lower(), [])])[0] for name, of in members}
        return json.dumps(said) if said else DONE


DIALECTS: Final[Mapping[str, Dialect]] = {
    "/messages": AnthropicMessages(),
    "/responses": OpenAIResponses(),
    "/chat/completions": ChatCompletions(),
    "enerateContent": GeminiContents(),
}
"""The dialects by what the path of a request has."""


def dialect_of(path: str) -> Dialect | None:
    """Return the dialect of a request to this path (None: it asks for no answer of a model)."""
    return next((dialect for mark, dialect in DIALECTS.items() if path.endswith(mark) or f":{mark}" in path), None)
