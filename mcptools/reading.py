"""The tools that look at files, as plain methods; nothing that they do is recorded."""

import mimetypes
from typing import Final

from mcptools.answers import Answer, DirectoryListed, FileRead, ListedEntry, TextRead
from mcptools.display import decoded, line_endings, one_line, shown
from mcptools.failures import Failure, Kind
from mcptools.hashline import hashlines
from mcptools.toolset import PathArgument, Toolset, absolute, sha256, telling
from objstore import is_binary, split_lines

__all__ = ["Reading"]

_NOT_UTF8: Final = (
    r"Not UTF-8 throughout: other bytes are shown as \xNN and can't be spelt in an edit; edit around them."
)


class Reading(Toolset):
    """Files and directories as they stand."""

    def read_file(self, path: PathArgument) -> Answer[FileRead]:
        """Read a whole file. Of a binary file: its type, size and hash."""
        files, found = self._read(path)
        content = found.bytes
        binary = is_binary(content)
        kind = mimetypes.guess_type(found.path)[0] or ("application/octet-stream" if binary else "text/plain")
        file_hash = sha256(content)
        if binary:
            text, utf8 = "", False
            said = f"Binary file: {kind}, {len(content)} bytes, SHA-256 {file_hash}"
        else:
            text, utf8 = decoded(content)
            said = text
        return Answer(
            content=FileRead(
                path=absolute(files, found.path),
                content=text,
                binary=binary,
                utf8=utf8,
                type=kind,
                size=len(content),
                file_hash=file_hash,
            ),
            text=said,
            notes=() if utf8 or binary else (_NOT_UTF8,),
        )

    def read_text_file(self, path: PathArgument) -> Answer[TextRead]:
        """Read a text file with a tag on each line: `{line}:{tag}|{content}`."""
        files, found = self._read(path)
        content = found.bytes
        if is_binary(content):
            raise Failure(Kind.BINARY_FILE, f"Cannot read binary file as text: {shown(path)}", path=path)
        lines = split_lines(content)
        utf8 = decoded(content)[1]
        text = hashlines(lines)
        return Answer(
            content=TextRead(
                path=absolute(files, found.path),
                content=text,
                file_hash=sha256(content),
                lines=len(lines),
                line_endings=line_endings(content),
                final_newline=content.endswith(b"\n"),
                utf8=utf8,
            ),
            text=text,
            notes=(f"file_hash: {sha256(content)}", *(() if utf8 else (_NOT_UTF8,))),
        )

    def list_directory(self, path: PathArgument) -> Answer[DirectoryListed]:
        """List the names in a directory, with their types and sizes."""
        with telling(path):
            files = self._directories.files_of(path)
            entries = [
                ListedEntry(name=shown(entry.name), type=entry.kind, size=entry.size)
                for entry in files.list_directory(path)
            ]
            place = absolute(files, files.relative(path))
        marks = {"file": "[FILE]", "directory": "[DIR]", "symlink": "[LINK]"}
        return Answer(
            content=DirectoryListed(path=place, entries=entries),
            text="\n".join(f"{marks.get(entry.type, '[OTHER]')} {one_line(entry.name)}" for entry in entries)
            or "The directory is empty.",
        )
