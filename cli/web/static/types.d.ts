/**
 * The requests and answers of the server of `cas web`.
 *
 * What `cas` prints with --json has the same fields here, and docs/json.md says what they mean: edits, changes, turns,
 * sessions, comments, running calls, outcomes. The page gets them with names of files as they are shown, with what it
 * needs to ask for more, and with control characters escaped in all texts. Lines count from 0 in these fields.
 *
 * Every request needs the cookie; everything under /api answers JSON. A refused request has a status of 400 or more and
 * a `Refusal` as body; every outcome of a decision, conflicts and failures included, is an `Outcome` with status 200.
 */

/** A file's path relative to the workspace, percent-encoded byte by byte as in an address ("/" stays): a key. */
export type Path = string;
/** The number of a document, which identifies a file across renames. */
export type Document = number;
/** A hunk of an edit, such as "12:2"; "12:0" is what edit 12 does to the file as a whole. */
export type Unit = string;
export type Status = "pending" | "accepted" | "rejected" | "away";
/** A moment in UTC, as ISO 8601. */
export type Time = string;
/** Start and end of a range of characters, counted in UTF-16 units, as String.slice does. */
export type Span = [start: number, end: number];
/** The id of a net change in hex, computed from its file, units and text: if these change, so does the key. */
export type Key = string;

export interface Refusal { error: string }

/** GET /api/queue: the pending changes, and what else a reviewer needs to know. */
export interface Queue {
  /** Changes with every record and decision; also sent by /api/events. */
  version: string;
  root: string;
  /** The other store whose changes these are; "": they are this one's. */
  elsewhere: string;
  /** Why nothing can be decided; "": it can. */
  read_only: string;
  /** Number of the newest decision that can be undone; 0: there is none. */
  undo: number;
  changes: number;
  unseen: number;
  /** "12 of 85": changes that were decided since the review began, by anybody, and these with the pending ones. */
  decided: number;
  total: number;
  /** Files with such decided changes and no pending ones, by path: with 0 `changes`, and the lines of the decided ones. */
  done: QueuedFile[];
  pending: number;
  accepted: number;
  rejected: number;
  /** Edits whose effect is not in the files now, because git put other content there. */
  away: number;
  /** The sessions that other fields name; if there are unattributed files, the newest sessions as well. */
  sessions: Session[];
  /** The turns with pending or such decided changes, the oldest first; edits without a turn come last, as turn 0 of their session. */
  turns: Turn[];
  /** Every file with pending changes, by path. */
  files: QueuedFile[];
  /**
   * How many of `files` are still to be read, as after the first request for a long history: they have the counts of
   * their edits, and 0 `changes`. A `changed` event follows at once, and the next queue has more of them.
   */
  reading: number;
  /** Documents of `files` with unattributed edits. */
  unattributed: Document[];
  /** Files with external changes that are not recorded yet. */
  external_changes: ExternalChange[];
  /** Comments that are not resolved. */
  comments: Comment[];
  markers: { file_path: string; path: Path; name: string; edit: number; decision: number; lines: number[]; decided: Unit[]; aside: Unit[] }[];
  collisions: { file_path: string; path: Path; name: string; sessions: { session: number; edits: number[] }[] }[];
  running_calls: RunningCall[];
  /** Rejections that wait for the end of a turn. They are in this server's memory only. */
  waiting: { id: number; action: "reject"; hunks: Unit[]; names: string[]; session: number }[];
  /** Commands (the setting review.check) that run now, and have to succeed before what was requested is decided. */
  checks: string[];
  /** Sentences about files that could not be read, and about waiting rejections that could not be made. */
  unreadable: string[];
}

export interface Session { session: number; name: string; client: string; prompt: string; began: Time; ended: Time; turns: number; edits: number }
/** `change`: modified, created, deleted or mode changed. */
export interface ExternalChange {
  file_path: string; path: Path; name: string; change: string;
  taken_by: string | null; blob_recorded: string | null; blob_found: string | null; mode_recorded: number | null; mode_found: number | null;
}
export interface Turn {
  turn: number; session: number; conversation_id: string; timestamp: Time; client: string; model: string; prompt: string;
  /** Whether a call of its session is running. */
  running: boolean;
  /**
   * By path; first those with pending changes. `own`: the pending changes that no earlier turn lists; the review goes on
   * to the next file that has any. `accepted`, `rejected`: the decided ones, in the first turn that they were part of.
   */
  files: { document: Document; lines_added: number; lines_removed: number; changes: number; unseen: number; own: number; accepted: number; rejected: number }[];
}
export interface RunningCall {
  session: number | null; conversation_id: string; client: string; tool: string; file_paths: string[] | null; began: Time; state: string;
  names: string[];
}

export interface FileSummary {
  document: Document; path: Path;
  /** The path as it is shown; control characters are escaped. */
  name: string;
  /** The accepted name if it differs, else "". */
  name_before: string;
  operation: string;
  lines_added: number; lines_removed: number; changes: number; unseen: number;
  turns: number[];
  kind: "text" | "binary" | "image" | "markdown" | "notebook";
  unrecorded: boolean;
}
/** `accepted`, `rejected`: how many of its changes were decided since the review began. */
export interface QueuedFile extends FileSummary { accepted: number; rejected: number }

/** GET /api/file?document=D[&turn=T][&first=0&count=2000][&context=3]: a file's changes, and rows of its diff. */
export interface File extends FileSummary {
  version: string;
  mode_before: number | null; mode_after: number | null; size_before: number | null; size_after: number | null;
  blob_before: string; blob_after: string;
  all: Change[];
  /** Hunks that cancel out; that later accepted edits took out; that are pending but needed by accepted edits. */
  cancelled: Unit[]; taken_out: Unit[]; kept_on: Unit[];
  /** Who wrote the changes, and why: `Writer.author` is a position in this list. */
  authors: Author[];
  /** The edits that `Change.before` names, by number. */
  edits: Record<string, EditSummary>;
  rows: Row[];
  first: number;
  /** Number of rows of the whole diff; the page requests those beyond `rows` when they come into view. */
  total: number;
  /** Characters in the longest row, so that the page can be laid out. */
  longest: number;
}
export interface Change {
  key: Key;
  kind: "lines" | "newline" | "create" | "delete" | "move" | "mode" | "content" | "encoding";
  /** The change in words, such as "moved from a", if no row shows it; "" for lines. */
  words: string;
  old_start: number; old_count: number; new_start: number; new_count: number;
  hunks: Unit[]; turns: number[];
  /** Indices of other changes of the file that are always decided with this one, even without their keys. */
  shares_with: number[];
  /** Of another store (`cas web STORE/`): how it is decided there, though that is not carried out yet. */
  verdict?: "accepted" | "rejected";
  /** With a verdict: by whom, and that it is not carried out yet. */
  awaited?: string;
  seen: boolean;
  whitespace_only: boolean;
  comments: Comment[];
  /** Of another store: the comments that it has not taken over yet, or refused, as `state` says. */
  waiting: Waiting[];
  /** First row and number of rows of the change itself; the context around it is not counted. 0 rows: `words` only. */
  row: number; rows: number;
  /** Its number in the order of the review, by turn, path and line, from 1 to the queue's `total`; 0: not known yet. */
  place: number;
  /** Who wrote it, and which of its rows. */
  writers: Writer[];
  /** These lines before: the edits that wrote what it removes, and those that make it up, the newest first. */
  before: number[];
}
/** A prompt, or a person, behind some lines. `turn` 0: none is known; `session` 0: none. `who` is such as "claude-code 2". */
export interface Author {
  turn: number; session: number; who: string; client: string; model: string; prompt: string;
  /** When the prompt was given; without one, when the first of the edits was made. */
  timestamp: Time;
  origin: "agent" | "person" | "formatter" | "git" | "external" | "unattributed";
}
/**
 * The part of an author in a change. `rows` are counted from 0 within the change, as in `OnScreen`: the removed lines that
 * the author took out, and the inserted ones that the author wrote. Rows of no writer are in both texts.
 */
export interface Writer { author: number; edits: number[]; hunks: Unit[]; rows: Span[] }
/**
 * GET /api/rejection?document=D[&turn=T]&key=K: what a rejection of a change would do, in `words` and as hunks: those of
 * other edits that go along, those that need it (a cascade would take them), and which of both are accepted now.
 */
export interface Rejection { words: string; goes_along: Unit[]; needed_by: Unit[]; accepted: Unit[]; edits: EditSummary[] }
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
  /** The page sets it: the line only moved within its file. */
  moved?: boolean;
  /** How the line ends, if not with a line feed. */
  end?: "no newline" | "CRLF" | "CR";
}
/** GET /api/lines?document=D[&turn=T]&first=1&count=100: lines of the current text as context, for an opened gap. */
export interface Lines { rows: Row[] }
/**
 * GET /api/line?document=D[&turn=T][&context=3]&row=R[&key=K][&first=F&count=N]: further characters of a row, from F on.
 * With the key of a change, rows are counted within it, from 0; the answer is 404 if there is no such change any more.
 */
export interface Line { t: string; cut: number }
/** GET /api/syntax?document=D[&turn=T][&context=3]&first=F&count=N: syntax marks of rows of these states; [] where there are none. */
export interface Syntax { first: number; blob_before: string; blob_after: string; rows: [start: number, end: number, kind: "keyword" | "string" | "comment" | "number" | "name"][][] }

/** `conversation_id`: of the agent that wrote it; null: a person did. */
export interface Answer { comment: number; timestamp: Time; who: string; conversation_id: string | null; text: string }
export interface Waiting { who: string; text: string; state: string }
/** `line`: null: it is on the file as a whole. */
export interface Comment extends Answer {
  id: string; state: "open" | "sent" | "answered" | "resolved"; sent_to: string | null;
  file_path: string; path: Path; name: string; line: number | null; line_count: number | null; is_there: boolean; hunks: Unit[];
  answers: Answer[];
}

/**
 * What was on the screen: for each change, by its key, or single hunk, by its name, the ranges of its rows that were in
 * the document, visible, and not cut. The rows are counted from 0 within the change (those of a hunk as `EditDetail` has
 * them), without the end. A change without rows, which words show, has []. An element that shows a row says so in
 * `data-of` and `data-at`, see shown.js.
 */
export type OnScreen = Record<Key | Unit, Span[]>;

/**
 * POST /api/decide. Exactly one of keys, units, path, turn, session and all. The names mean what they mean to `cas`: a turn
 * that is rejected goes with its accepted edits, after the question "confirm", as does a single hunk that is accepted,
 * and whatever goes along that was not shown.
 * cascade and on_external need the ticket of the outcome that they answer.
 */
export interface Decide {
  action: "accept" | "reject" | "reset";
  /** Net changes as they were shown. If one of them, or one that is decided with it, has changed, the outcome is "overtaken". */
  keys?: Key[];
  /** Single hunks, each with the status that was shown. */
  units?: Record<Unit, Status>;
  /** What is pending in a file, of whatever turn; of a `cancelled` unit no row has to have been on the screen. */
  path?: Path;
  /** The edits of a turn, of a session, or of all agents. */
  turn?: number;
  session?: number;
  all?: boolean;
  /**
   * What was on the screen. If the decision covers rows that were not, the outcome is "unshown" and nothing is decided:
   * of every change that has a pending hunk which is decided, all rows; of hunks that no change shows, or that `units`
   * names, their own rows; for a reset, all rows of their decided change do. Hunks that cancel out need none. What a
   * cascade takes along, and accepted edits that a rejection takes back, are listed by an outcome of their own.
   */
  on_screen?: OnScreen;
  reason?: string;
  cascade?: boolean;
  /** Keep files of which the creation is rejected, with the lines of others. It needs a ticket as cascade does. */
  keep_lines?: boolean;
  markers?: boolean;
  on_external?: "abort" | "keep" | "discard";
  /** The ticket of the outcome that this request answers: it identifies the conflict or changes that were shown. */
  ticket?: string;
  /**
   * What to do if a running call, not in the background, may change the files: reject now, or wait for the end of its
   * turn. Without this field the setting `review.running` decides; by default it asks.
   */
  running?: "now" | "wait";
}
/** POST /api/undo {number: the decision shown as newest, on_external?, ticket?}, POST /api/redo {}. Answer: Outcome. */
/** POST /api/waiting {id, do: "now" | "cancel"}. Answer: Outcome. */
/** POST /api/stop_checks {}: end the checks that run. Answer: {}. */

/**
 * What `cas` prints with --json of a decision, with its message. `notes`: what else a person should read; `detail`: the
 * message with the names of edits and hunks; `subject`: what it is on, such as "3 changes in a.py" ("": single hunks);
 * `document`: the first file that it is on (null: no hunk was decided).
 */
export interface Answered {
  action: string; dry_run: boolean; decision: number | null; act: object | null;
  changed: { name: Unit; status: Status; cascaded: boolean }[];
  edits: number; accepted_edits: number; taken_back: Unit[]; files: Effect[]; recorded: number[];
  notices: object[]; markers: object[]; unmarked: number[]; repeated: object[]; taken_out: object[]; kept: object[];
  older: number[]; broken: object[]; absent: string[]; given_to: number[];
  conflicts: Conflict[]; accept_first: Unit[]; reject_first: Unit[]; can_keep_lines: boolean;
  external_changes: (ExternalChange & { rows: Row[] })[];
  message: string; notes: string[]; detail: string; subject: string; document: Document | null;
}
/** Decided and the two after it have all that `cas` prints; the others are those of the page alone. */
export type Outcome =
  | Answered & { outcome: "decided" }
  | Answered & { outcome: "nothing-to-do" }
  | Answered & { outcome: "conflict";
      /**
       * Whether `cascade`, `markers` or `keep_lines` would succeed, and the effects of the first and last on files;
       * `along`: what else `cascade` would reject, in sentences.
       */
      can_cascade: boolean; can_mark: boolean; cascade: Effect[]; keep_lines: Effect[]; along: string;
      ticket: string }
  | Answered & { outcome: "external-changes"; ticket: string }
  /**
   * A rejection takes back accepted edits, the decision is on more than was shown, or it breaks names: the ticket says
   * that it is meant. `hunks`: all that it is on; `accepted`: those of them that a rejection takes back; `listed`: those
   * that were not shown before, each with its status now (none, if it breaks names).
   */
  | { outcome: "confirm"; title: string; message: string; hunks: Unit[]; accepted: Unit[]; listed: { name: Unit; status: Status }[]; action: "accept" | "reject" | "reset" | "undo" | "redo"; ticket: string }
  | { outcome: "running"; message: string; calls: RunningCall[] }
  | { outcome: "waiting"; id: number; message: string }
  | { outcome: "overtaken"; message: string }
  /**
   * The decision covers what was not on the screen: `lines` rows, of these changes and hunks (the first 5,000 of each).
   * The page shows them and asks again, with more in `on_screen`.
   */
  | { outcome: "unshown"; message: string; lines: number; changes: { document: Document; path: Path; name: string; key: Key; rows: Span[] }[]; hunks: Unit[] }
  /** The check did not succeed on a copy of what the decision would leave: the end of its output. */
  | { outcome: "unchecked"; title: string; message: string; output: string[] }
  | { outcome: "read_only"; message: string }
  | { outcome: "failed"; message: string };
export interface Effect {
  path_before: string | null; path_after: string | null; blob_before: string | null; blob_after: string | null;
  mode_before: number | null; mode_after: number | null;
  name: string; words: string;
}
export interface Conflict {
  kind: string; unit: Unit; needs: Unit[]; file_path: string; path: Path; name: string; line: number | null;
  removed: string | null; inserted: string | null; removed_bytes: number; inserted_bytes: number; outside: Unit[]; message: string;
  /** The first of its removed and inserted lines. */
  rows: Row[];
  /** The edits that the units belong to. */
  edits: EditSummary[];
}

/** POST /api/seen {keys: Key[], on_screen: OnScreen}: {unshown: Key[]}. Marks the changes that were wholly on the screen, not the `unshown`. */
/** POST /api/comment {keys | units | path+lines, text}, or {answers: number, text}: Comment. `seen`: the blob whose lines they are. */
/** POST /api/comment/resolve {number, resolved: boolean}: Comment. */
/** POST /api/claim {edits: number[], session: number | null}: Outcome. */

/**
 * GET /api/edits?units=3:1,3:2 : the edits of some hunks, each with its own diff. If one hunk is asked for, it has all its
 * rows, uncut; of several, each has at most 2,000.
 */
export interface Edits { edits: EditDetail[] }
export interface EditSummary {
  seq: number; timestamp: Time; operation: string; tool_name: string; status: Status; origin: string; owner: string | null; turn: number | null;
  lines_added: number; lines_removed: number; reason: string;
  /** What was found out for the decision: names that it breaks, and the check that succeeded, with the end of its output. */
  check: string;
  who: string; prompt: string; path: Path; name: string;
}
export interface EditDetail extends EditSummary { hunks: { name: Unit; status: Status; words: string; rows: Row[]; splits: Row[][] }[] }
/**
 * POST /api/split {unit, rows: positions in the hunk's `rows`, status: the hunk's}: Outcome. An edit takes these lines out:
 * inserted ones go, removed ones come back. The hunk's status stays; `number` is that by which an undo takes it back.
 */

/** GET /api/blame?path=P[&first=1&count=2000]. */
export interface Blame {
  path: Path; name: string; total: number; first: number;
  /** unit: null for lines from before the first kept edit. */
  lines: { n: number; t: string; unit: Unit | null }[];
  /** The edits that `lines` name, by number. */
  edits: Record<string, EditSummary>;
}
/**
 * GET /api/timeline[?path=P][&before=SEQ][&count=500]: the newest edits before SEQ, at most 1,000, the oldest of them
 * first. Without a path: the edits of all files. `more`: there are older ones.
 */
export interface Timeline { path: Path; name: string; points: EditSummary[]; more: boolean }
/**
 * GET /api/state?path=P&seq=N&before=0|1[&first=0&count=2000&context=3]: a file after (or before) an edit. P is its name
 * at that moment. The rows show what a restore would do to the file that was last recorded at P: it removes "-" lines
 * and inserts "+" lines. With a large context the rows are the whole file.
 */
export interface State {
  path: Path; name: string; exists: boolean; kept: boolean; blob: string; size: number;
  /** Whether the file that was last recorded there is in this state. */
  same: boolean;
  /** Why there are no rows: one of both states is binary, or both together have more than 4 MB. */
  binary: boolean; too_large: boolean;
  rows: Row[]; first: number; total: number;
}
/**
 * GET /api/moment?seq=N: the files that differ between the moment after that edit and now, at most 1,000. what: "new",
 * "gone", "changed" or "moved to NAME"; path is that of the file at the earlier moment.
 */
export interface Moment { timestamp: Time; files: { path: Path; name: string; what: string }[]; more: boolean }
/**
 * POST /api/restore {path, seq, before?, dry_run?, on_external?, ticket?}: Outcome. "decided" has action "restore" and
 * the number by which an undo takes it back. If the file has changes that are not recorded, the first outcome is
 * "external-changes"; on_external "keep" with its ticket records them, and then restores.
 */

/**
 * GET /api/search?q=TEXT&in=text|path|prompt[&before=SEQ]: at most 50 matching edits, the newest first. A request
 * searches for 1.5 s. `more`: there is history left to search, with `before` as the next request's.
 */
export interface Search { hits: { edit: EditSummary; rows: Row[] }[]; more: boolean; before: number }

/** GET /api/store. */
export interface Store { facts: { name: string; value: string }[]; free: { blobs: number; bytes: number }; total: number; gc: string }
/** GET /plots/activity.svg, /plots/store.svg, /plots/file.svg?path=P (image/svg+xml); with .json instead of .svg: */
export interface Plot { title: string; summary: string; columns: string[]; rows: string[][] }

/** GET /rendered?document=D[&turn=T]: an HTML page for a sandboxed frame with markdown or a notebook, before and after. */
/** GET /image?blob=HEX: an image that a file holds or held (PNG, JPEG, GIF, WebP), else 404. */
/**
 * GET /api/events: server-sent events. `changed` (data: {"version": string}) after every record, decision or change of a
 * running call; `end` before the server ends. A comment line every 15 s keeps the connection open.
 */
