"""The command `cas completion`: what a shell has to know to complete the names that `cas` takes."""

from typing import Final

import click

from cli.invocation import command
from cli.terminal import write

__all__ = ["SCRIPTS", "completion"]

BASH: Final = r"""# Completion of cas for bash: source <(cas completion bash)
_cas_complete() {
    local found line
    found=$(cas --complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null) || return 1
    COMPREPLY=()
    while IFS= read -r line; do
        [[ -n $line ]] || continue
        # Files have nothing said of them. bash quotes their names as it does others; one that is too old is helped.
        # What has something said of it is quoted already: it may hold what would be run.
        [[ $line == *$'\t'* ]] || compopt -o filenames 2>/dev/null || printf -v line '%q' "$line"
        [[ $line == */ ]] && compopt -o nospace 2>/dev/null
        COMPREPLY+=("${line%%$'\t'*}")
    done <<< "$found"
    return 0
}
complete -o default -F _cas_complete cas
"""

ZSH: Final = r"""#compdef cas
# Completion of cas for zsh: source <(cas completion zsh), or as the file _cas in a folder of fpath.
_cas() {
    local line name about
    local -a found plain folders
    local typed="${(j: :)${(@q)words[1,CURRENT-1]}} ${words[CURRENT]}"
    for line in "${(@f)$(cas --complete zsh "$typed" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        name=${line%%$'\t'*}
        about=${line#*$'\t'}
        # Nothing may be added with -Q, for names may hold what would be run: without, zsh quotes what it inserts.
        if [[ $name == */ ]]; then
            folders+=("$name")
        elif [[ $about == $line ]]; then
            plain+=("$name")
        else
            found+=("${name//:/\\:}:$about")
        fi
    done
    (( $#found )) && _describe -V 'cas' found
    (( $#plain )) && compadd -V names -- "${plain[@]}"
    (( $#folders )) && compadd -S '' -- "${folders[@]}"
    (( $#found + $#plain + $#folders )) || _files
}
if [[ $funcstack[1] == _cas ]]; then
    _cas "$@"
else
    compdef _cas cas
fi
"""

FISH: Final = r"""# Completion of cas for fish: cas completion fish | source
complete -c cas -f -k -a '(cas --complete fish (commandline -cp) 2>/dev/null)'
"""

SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@command("completion")
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
def completion(shell: str) -> None:
    """Print what makes bash, zsh or fish complete commands, options, edits, conversations and files of `cas`.

    In the shell's own start file: source <(cas completion bash), the same for zsh, or cas completion fish | source.
    """
    write([SCRIPTS[shell].encode()])
