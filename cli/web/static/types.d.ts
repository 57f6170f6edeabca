/**
 * What the server of `cas web` sends and takes, and so what the page knows. No other text describes it.
 *
 * Every request needs the cookie; everything under /api answers JSON. A refused request has a status of 400 or more and
 * a `Refusal` as body; every outcome of a decision, conflicts and failures included, is an `Outcome` with status 200.
 */

/** A file's path relative to the workspace, percent-encoded byte by byte as in an address ("/" stays): a key. */
export type Path = string;
/** What identifies a file while it is pending, wherever it moves: the number of its document. */
export type Document = number;
/** A hunk of an edit, such as "12:2"; "12:0" is what edit 12 does to the file as a whole. */
export type Unit = string;
export type Status = "pending" | "accepted" | "rejected" | "away";
/** Seconds since 1970-01-01 UTC, with a fraction. */
export type Time = number;
/** Start and end of a range of characters, counted in UTF-16 units, as String.slice does. */
export type Span = [start: number, end: number];
/** What identifies a net change: its file, units and text; a change that reads otherwise has another key. In hex. */
export type Key = string;

export interface Refusal { error: string }

/** GET /api/queue: what awaits review. */
export interface Queue {
  /** Changes with every record and decision; also sent by /api/events. */
  version: string;
  root: string;
  /** Why nothing can be decided; "": it can. */
  read_only: string;
  /** Whether a decision can be undone, and which is the newest (0: none), and whether an undo can be redone. */
  undo: number;
  changes: number;
  unseen: number;
  pending: number;
  accepted: number;
  rejected: number;
  /** Those that turns, calls, collisions or waiting rejections name; with unattributed files also the newest ones. */
  sessions: Session[];
  /** With pending changes, the oldest first; those without a turn come last, as turn 0 of their session. */
  turns: Turn[];
  /** Every file with pending changes, by path. */
  files: FileSummary[];
  /**
   * How many of these are still to be read, as at the first look at a long history: they have the counts of their edits,
   * and 0 `changes`. A `changed` event follows at once, and the next queue has more of them.
   */
  reading: number;
  /** Files that no call is known to have changed: documents of `files`. */
  unattributed: Document[];
  /** Files whose bytes on disk are not recorded. */
  outside: { path: Path; name: string; what: "changed" | "gone" | "new" }[];
  /** Those that are not resolved. */
  comments: Comment[];
  markers: { path: Path; name: string; lines: number[]; aside: Unit[] }[];
  collisions: { path: Path; name: string; sessions: number[] }[];
  running: RunningCall[];
  /** Decisions that wait for the end of a turn. They are kept by this server only. */
  waiting: { id: number; action: "reject"; units: Unit[]; names: string[]; session: number }[];
  /** What could not be read, and what became of rejections that waited and were not made, each a sentence. */
  unreadable: string[];
}

export interface Session { number: number; client: string; prompt: string; began: Time; edits: number }
export interface Turn {
  number: number; session: number; client: string; model: string; prompt: string; time: Time;
  /** Whether a call of its session has not ended. */
  running: boolean;
  files: { document: Document; added: number; removed: number; changes: number; unseen: number }[];
  /** What identifies all its changes as they are now, to decide on them together; "": they are not all read yet. */
  shown: string;
}
export interface RunningCall { session: number; client: string; tool: string; state: string; began: Time; names: string[] }

export interface FileSummary {
  document: Document; path: Path;
  /** The path as it is shown; control characters are escaped. */
  name: string;
  /** The accepted name, if it is another. */
  name_before: string;
  operation: string;
  added: number; removed: number; changes: number; unseen: number;
  turns: number[];
  kind: "text" | "binary" | "image" | "markdown" | "notebook";
  unrecorded: boolean;
}

/** GET /api/file?document=D[&turn=T][&first=0&count=2000][&context=3]: a file's changes, and rows of its diff. */
export interface File extends FileSummary {
  version: string;
  mode_before: number; mode: number; size_before: number; size: number;
  blob_before: string; blob: string;
  all: Change[];
  /** Hunks without a net effect; taken out by later accepted edits; part of the accepted text though pending. */
  cancelled: Unit[]; taken_out: Unit[]; kept_on: Unit[];
  rows: Row[];
  first: number;
  /** Number of rows of the whole diff; rows beyond `rows` are asked for when they come into view. */
  total: number;
  /** Characters in the longest row, so that the page can be laid out. */
  longest: number;
}
export interface Change {
  key: Key;
  kind: "lines" | "create" | "delete" | "move" | "mode" | "content";
  /** In words, such as "moved from a to b"; for changes that no row shows. "" for lines. */
  words: string;
  line_before: number; line_after: number; removed: number; inserted: number;
  units: Unit[]; turns: number[];
  /** Indices of other changes of the file that are decided with this one, whether their keys are sent or not. */
  shares_with: number[];
  seen: boolean;
  whitespace_only: boolean;
  comments: Comment[];
  /** First row and number of rows of the change itself; the context around it is not counted. 0 rows: `words` only. */
  row: number; rows: number;
}
export interface Row {
  /** " " context, "-" removed, "+" inserted, "~" a gap: `hidden` lines of context are not shown. */
  k: " " | "-" | "+" | "~";
  o?: number; n?: number;
  /** The line as it is shown: without its end, control and direction characters escaped, cut after 2,000 characters. */
  t: string;
  /** Of a gap, `o` and `n` are its first hidden lines. */
  /** Words that differ from those of the line that it replaces. */
  w?: Span[];
  /** Index of its change. */
  c?: number;
  hidden?: number;
  /** Number of characters that were cut off. */
  cut?: number;
  /** How the line ends, if not with a line feed. */
  end?: "no newline" | "CRLF" | "CR";
}
/** GET /api/lines?document=D[&turn=T]&first=1&count=100: lines of the current text as context, for an opened gap. */
export interface Lines { rows: Row[] }
/** GET /api/line?document=D[&turn=T][&context=3]&row=R[&first=F&count=N]: characters of one row, from F on. */
export interface Line { t: string; cut: number }
/** GET /api/syntax?document=D[&turn=T][&context=3]&first=F&count=N: kinds of words of rows; [] where none is known. */
export interface Syntax { first: number; rows: [start: number, end: number, kind: "keyword" | "string" | "comment"][][] }

export interface Comment {
  number: number; text: string; who: string; by_agent: boolean; time: Time;
  state: "open" | "sent" | "answered" | "resolved";
  path: Path; name: string; lines: [number, number]; units: Unit[];
  answers: Comment[];
}

/** POST /api/decide. Exactly one of keys, units and turn. cascade and on_external need the ticket of what they answer. */
export interface Decide {
  action: "accept" | "reject" | "reset";
  /**
   * Net changes as they were shown: if one is no longer there, or one that is decided with it, the outcome is
   * "overtaken". With the last changes of a file go its `cancelled` units.
   */
  keys?: Key[];
  /** Single hunks, each with the status that was shown. */
  units?: Record<Unit, Status>;
  /** All changes of a turn, and `shown` of the turn: if they are others by now, the outcome is "overtaken". */
  turn?: number;
  shown?: string;
  reason?: string;
  cascade?: boolean;
  markers?: boolean;
  on_external?: "abort" | "keep" | "discard";
  /** Of the outcome that is answered: it names the conflict or the outside changes that were shown. */
  ticket?: string;
  /**
   * When a call of an agent is open that may change the files, and is not in the background: reject now, or wait for
   * the end of its turn. Without it the setting `review.running` decides, which mostly asks.
   */
  running?: "now" | "wait";
}
/** POST /api/undo {number: the decision shown as newest, on_external?, ticket?}, POST /api/redo {}. Answer: Outcome. */
/** POST /api/waiting {id, do: "now" | "cancel"}. Answer: Outcome. */

export type Outcome =
  | { outcome: "decided"; number: number; action: string; units: Unit[]; cascaded: Unit[]; files: Effect[]; notes: string[]; message: string; version: string }
  | { outcome: "nothing"; message: string }
  | { outcome: "conflicted"; message: string; conflicts: Conflict[]; accept_first: Unit[]; reject_first: Unit[];
      /** Whether the decision can be made with `cascade`, or with `markers`; what the cascade would do to files. */
      can_cascade: boolean; can_mark: boolean; cascade: Effect[]; ticket: string }
  | { outcome: "external"; message: string; changes: { path: Path; name: string; what: string; rows: Row[] }[]; ticket: string }
  | { outcome: "running"; message: string; calls: RunningCall[] }
  | { outcome: "waiting"; id: number; message: string }
  | { outcome: "overtaken"; message: string }
  | { outcome: "read_only"; message: string }
  | { outcome: "failed"; message: string };
export interface Effect { name: string; words: string }
export interface Conflict {
  unit: Unit; needs: Unit[]; path: Path; name: string; line: number; words: string;
  removed: string[]; inserted: string[];
  /** The edits that the units belong to: what a person needs to know to choose. */
  edits: EditSummary[];
}

/** POST /api/seen {keys: Key[]}: {}. */
/** POST /api/comment {keys | units | path+lines, text}, or {answers: number, text}: Comment. */
/** POST /api/comment/resolve {number, resolved: boolean}: Comment. */
/** POST /api/claim {edits: number[], session: number | null}: Outcome. */

/** GET /api/edits?units=3:1,3:2 : the single edits behind a change, each with its own diff. */
export interface Edits { edits: EditDetail[] }
export interface EditSummary {
  seq: number; time: Time; who: string; tool: string; turn: number; prompt: string; status: Status; path: Path; name: string;
  operation: string; added: number; removed: number; reason: string;
}
export interface EditDetail extends EditSummary { hunks: { unit: Unit; status: Status; words: string; rows: Row[]; splits: Row[][] }[] }
/**
 * POST /api/split {unit, part: index of the hunk's `splits`, status: the hunk's}: Outcome. It takes that part out, by an
 * edit and not by a decision: `number` is 0.
 */

/** GET /api/blame?path=P[&first=1&count=2000]. */
export interface Blame {
  path: Path; name: string; total: number; first: number;
  /** unit: null for lines that were there before the first edit that is kept. */
  lines: { n: number; t: string; unit: Unit | null }[];
  /** By number of the edit. */
  edits: Record<string, EditSummary>;
}
/**
 * GET /api/timeline[?path=P][&before=SEQ][&count=500]: the newest edits before SEQ, at most 1,000, the oldest of them
 * first. Without a path: everywhere. `more`: there are older ones.
 */
export interface Timeline { path: Path; name: string; points: EditSummary[]; more: boolean }
/**
 * GET /api/state?path=P&seq=N&before=0|1[&first=0&count=2000&context=3]: a file after (or before) an edit. P is its name
 * after the edit, or before it. The rows say what a restore would do to the file that was last recorded there: "-" goes,
 * "+" comes; with a large context they are the whole file.
 */
export interface State {
  path: Path; name: string; exists: boolean; kept: boolean; blob: string; size: number;
  /** Whether the file that was last recorded there is in this state. */
  same: boolean;
  /** No rows, because one of both states is binary, or both together have more than 4 MB. */
  binary: boolean; too_large: boolean;
  rows: Row[]; first: number; total: number;
}
/**
 * GET /api/moment?seq=N: the files that differ between the moment after that edit and now, at most 1,000. what: "new",
 * "gone", "changed" or "moved to NAME"; path is where the file was then.
 */
export interface Moment { time: Time; files: { path: Path; name: string; what: string }[]; more: boolean }
/**
 * POST /api/restore {path, seq, before?, dry_run?, on_external?, ticket?}: Outcome. "decided" has action "restore" and
 * number 0, because it is an edit and no decision: rejecting its `units` takes it back. A file with changes that are not
 * recorded is "external" first; on_external "keep" with the ticket records them, and then restores.
 */

/**
 * GET /api/search?q=TEXT&in=text|path|prompt[&before=SEQ]: edits that inserted or removed it, the newest first, at most
 * 50. A request searches for 1.5 s: `more` says that there is history left to search, and `before` from where.
 */
export interface Search { hits: { edit: EditSummary; rows: Row[] }[]; more: boolean; before: number }

/** GET /api/store. */
export interface Store { facts: { name: string; value: string }[]; free: { blobs: number; bytes: number }; total: number; gc: string }
/** GET /plots/activity.svg, /plots/store.svg, /plots/file.svg?path=P (image/svg+xml); with .json instead of .svg: */
export interface Plot { title: string; summary: string; columns: string[]; rows: string[][] }

/** GET /rendered?document=D[&turn=T]: an HTML page for a sandboxed frame: markdown or a notebook, before and after. */
/** GET /image?blob=HEX: an image that a file holds or held (PNG, JPEG, GIF, WebP), else 404. */
/**
 * GET /api/events: server-sent events. `changed` (data: {"version": string}) after every record, decision or change of a
 * running call; `end` before the server ends. A comment line every 15 s keeps the connection open.
 */
