// Say what the TypeScript compiler finds undefined or not exported in a program that is in memory.
//
// A line of standard input is {files: {path: text}}, a program, or {change: {path: text | null}}, that program with some
// files changed. The answer is a line with [path, name] of each error. NODE_PATH has typescript and @types/node.

const path = require("node:path");
const readline = require("node:readline");
const ts = require("typescript");

const NAMES = new Set([2304, 2305, 2307, 2459, 2503, 2552, 2580, 2581, 2582, 2584, 2591, 2592, 2593, 2614, 2724, 1192, 18004]);
const ROOT = "/program/";
const options = {
  allowJs: true, checkJs: true, noEmit: true, skipLibCheck: true, strict: false, jsx: ts.JsxEmit.Preserve,
  target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ["lib.esnext.full.d.ts"], types: ["node"], typeRoots: [path.join(process.env.NODE_PATH, "@types")],
  allowImportingTsExtensions: true, allowSyntheticDefaultImports: true, esModuleInterop: true, resolveJsonModule: true,
};

let files = new Map();
let versions = new Map();
let clock = 0;

const host = {
  getCompilationSettings: () => options,
  getScriptFileNames: () => [...files.keys()],
  getScriptVersion: (name) => String(versions.get(name) ?? 0),
  getScriptSnapshot: (name) => {
    const text = files.get(name) ?? (name.startsWith(ROOT) ? undefined : ts.sys.readFile(name));
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
  },
  getCurrentDirectory: () => ROOT,
  getDefaultLibFileName: (own) => ts.getDefaultLibFilePath(own),
  fileExists: (name) => files.has(name) || (!name.startsWith(ROOT) && ts.sys.fileExists(name)),
  readFile: (name) => files.get(name) ?? ts.sys.readFile(name),
  directoryExists: (name) => !name.startsWith(ROOT) || [...files.keys()].some((file) => file.startsWith(`${name}/`)),
};
const service = ts.createLanguageService(host);

function put(name, text) {
  versions.set(name, (clock += 1));
  if (text === null) files.delete(name);
  else files.set(name, text);
}

// Which files a change of some may break: those, what imports them, and what imports what exports them again.
function concerned(changed) {
  const paths = (name) => [...files.get(name).matchAll(/(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'](\.[^"']*)["']/g)]
    .map(([, to]) => path.posix.join(path.posix.dirname(name), to).replace(/(\.d)?\.[mc]?[jt]sx?$/, "").replace(/\/(index)?$/, ""));
  const bare = (name) => name.replace(/(\.d)?\.[mc]?[jt]sx?$/, "").replace(/\/index$/, "");
  const found = new Set(changed);
  const again = [...changed].map(bare);
  const seen = new Set(again);
  const imports = new Map([...files.keys()].map((name) => [name, new Set(paths(name))]));
  while (again.length) {
    const module = again.pop();
    for (const [name, from] of imports) {
      if (!from.has(module)) continue;
      found.add(name);
      if (/\bexport\b[^;]*\bfrom\b|\bexports\b/.test(files.get(name)) && !seen.has(bare(name))) {
        seen.add(bare(name));
        again.push(bare(name));
      }
    }
  }
  return [...found].filter((name) => files.has(name));
}

function errors(names) {
  const found = [];
  for (const name of names) {
    const short = name.slice(ROOT.length);
    if (service.getSyntacticDiagnostics(name).length) found.push([short, "(syntax)"]);
    for (const { code, start, length, file, messageText } of service.getSemanticDiagnostics(name)) {
      if (!NAMES.has(code) || !file) continue;
      const text = file.text.slice(start, start + length);
      if (code === 2307 && !/^['"]\./.test(text)) continue;
      found.push([short, `${code === 2304 || code === 2552 ? "" : typeof messageText === "string" ? messageText : messageText.messageText} ${text}`]);
    }
  }
  return found;
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const asked = JSON.parse(line);
  if (asked.files) {
    files = new Map();
    for (const [name, text] of Object.entries(asked.files)) put(ROOT + name, text);
    process.stdout.write(`${JSON.stringify(errors(files.keys()))}\n`);
    return;
  }
  const before = Object.keys(asked.change).map((name) => [name, files.get(ROOT + name) ?? null]);
  for (const [name, text] of Object.entries(asked.change)) put(ROOT + name, text);
  const names = concerned(Object.keys(asked.change).map((name) => ROOT + name));
  process.stdout.write(`${JSON.stringify(errors(names))}\n`);
  for (const [name, text] of before) put(ROOT + name, text);
});
