// Runs regular expressions one character at a time, and counts how often it looks at one. It knows the syntax that the page uses.

const SHORT = {
  s: (it) => /^\s$/u.test(it), S: (it) => !/^\s$/u.test(it), w: (it) => /^\w$/.test(it), d: (it) => /^\d$/.test(it),
};

/** The tree of a pattern. A `char` has `is`, which tells whether it takes a character. */
function parse(source) {
  let at = 0;
  let groups = 0;
  const take = (text) => source.startsWith(text, at) && Boolean(at += text.length);
  const plain = (char) => [char, (it) => it === char];
  /** The character behind a backslash, if it is one, and what it takes. */
  function escaped() {
    const name = source[at++];
    if (name === "u") return plain(String.fromCharCode(Number.parseInt(source.slice(at, at += 4), 16)));
    return SHORT[name] ? ["", SHORT[name]] : plain(name === "n" ? "\n" : name);
  }
  function set() {
    const not = take("^");
    const all = [];
    while (!take("]")) {
      const [from, is] = take("\\") ? escaped() : plain(source[at++]);
      const isRange = from && source[at] === "-" && source[at + 1] !== "]" && take("-");
      const [to] = isRange ? (take("\\") ? escaped() : [source[at++]]) : [from];
      all.push(isRange ? (it) => it >= from && it <= to : is);
    }
    return (it) => all.some((own) => own(it)) !== not;
  }
  function atom() {
    for (const [mark, behind, not] of [["(?=", 0, 0], ["(?!", 0, 1], ["(?<=", 1, 0], ["(?<!", 1, 1]]) {
      if (take(mark)) return { kind: "assert", behind, not, body: either() };
    }
    if (take("(?:")) return either();
    if (take("(")) {
      const number = (groups += 1);
      return { kind: "group", number, body: either() };
    }
    if (take("[")) return { kind: "char", is: set() };
    if (take("^")) return { kind: "begin" };
    if (take("$")) return { kind: "end" };
    if (take(".")) return { kind: "char", is: (it) => !"\n\r\u2028\u2029".includes(it) };
    if (!take("\\")) return { kind: "char", is: plain(source[at++])[1] };
    if (/[1-9]/.test(source[at])) return { kind: "back", number: Number(source[at++]) };
    return { kind: "char", is: escaped()[1] };
  }
  function repeated() {
    const body = atom();
    const [, range, from, comma, to] = /^([*+?]|\{(\d+)(,?)(\d*)\})/.exec(source.slice(at)) ?? [];
    if (!range) return body;
    at += range.length;
    const [min, max] = { "*": [0, Infinity], "+": [1, Infinity], "?": [0, 1] }[range]
      ?? [Number(from), comma ? Number(to || Infinity) : Number(from)];
    return { kind: "repeat", body, min, max, lazy: take("?") };
  }
  function either() {
    const all = [[]];
    while (at < source.length && !take(")")) {
      if (take("|")) all.push([]);
      else all.at(-1).push(repeated());
    }
    return { kind: "either", all };
  }
  return either();
}

/** The instructions of a tree, as a machine that goes back has them. */
function compile(node, code) {
  switch (node.kind) {
    case "either": {
      const ends = node.all.map((items, n) => {
        const split = n < node.all.length - 1 ? code.push({ do: "split" }) - 1 : -1;
        for (const it of items) compile(it, code);
        const jump = split >= 0 ? code.push({ do: "jump" }) - 1 : -1;
        if (split >= 0) Object.assign(code[split], { to: split + 1, or: code.length });
        return jump;
      });
      for (const it of ends) if (it >= 0) code[it].to = code.length;
      break;
    }
    case "group":
      code.push({ do: "open", number: node.number });
      compile(node.body, code);
      code.push({ do: "close", number: node.number });
      break;
    case "repeat": {
      const id = code.push({ do: "start" }) - 1;
      const loop = code.push({ do: "loop", id, min: node.min, max: node.max, lazy: node.lazy }) - 1;
      compile(node.body, code);
      code.push({ do: "jump", to: loop });
      code[loop].out = code.length;
      break;
    }
    case "assert": {
      const own = [];
      compile(node.body, own);
      code.push({ do: "assert", not: node.not, behind: node.behind, code: own });
      break;
    }
    default: code.push({ ...node, do: node.kind });
  }
  return code;
}

/** The end of the match that begins at `from`, or -1. `count` is called for each look at a character. */
function run(code, text, from, count) {
  const stack = [{ pc: 0, at: from, groups: {}, loops: {} }];
  while (stack.length) {
    let { pc, at, groups, loops } = stack.pop();
    let alive = true;
    while (alive && pc < code.length) {
      const it = code[pc];
      pc += 1;
      switch (it.do) {
        case "char": count(); alive = at < text.length && it.is(text[at]); at += 1; break;
        case "begin": alive = at === 0; break;
        case "end": alive = at === text.length; break;
        case "jump": pc = it.to; break;
        case "split": stack.push({ pc: it.or, at, groups, loops }); pc = it.to; break;
        case "open": groups = { ...groups, [it.number]: [at, at] }; break;
        case "close": groups = { ...groups, [it.number]: [groups[it.number][0], at] }; break;
        case "back": {
          const [from, to] = groups[it.number];
          for (let n = from; n < to && alive; n += 1, at += 1) {
            count();
            alive = text[n] === text[at];
          }
          break;
        }
        case "start": loops = { ...loops, [pc - 1]: 0 }; break;
        case "loop": {
          const had = loops[it.id];
          const again = { pc, at, groups, loops: { ...loops, [it.id]: had + 1 } };
          const out = { pc: it.out, at, groups, loops };
          const [first, second] = had < it.min ? [again] : had >= it.max ? [out] : it.lazy ? [out, again] : [again, out];
          if (second) stack.push(second);
          ({ pc, at, groups, loops } = first);
          break;
        }
        // What the page looks for behind a place is one character.
        case "assert": alive = (run(it.code, text, at - it.behind, count) < 0) === Boolean(it.not); break;
      }
    }
    if (alive) return at;
  }
  return -1;
}

const machines = new Map();
const machine = ({ source }) => {
  if (!machines.has(source)) {
    const tree = parse(source);
    const isFixed = tree.all.every(([first]) => first?.kind === "begin");
    machines.set(source, { source, tree, code: compile(tree, []), isFixed });
  }
  return machines.get(source);
};

/** How often `read` looks at a character of its texts. It compares each match with that of the real expression. */
export function looks(read) {
  let count = 0;
  const own = { exec: RegExp.prototype.exec };
  const { exec } = own;
  RegExp.prototype.exec = function counted(text) {
    RegExp.prototype.exec = exec;
    const { code, isFixed } = machine(this);
    const start = this.global || this.sticky ? this.lastIndex : 0;
    const last = this.sticky || isFixed ? start : text.length;
    let [from, end] = [start, -1];
    for (; from <= last && end < 0; from += 1) end = run(code, text, from, () => { count += 1; });
    const found = exec.call(this, text);
    RegExp.prototype.exec = counted;
    const whole = end < 0 ? undefined : text.slice(from - 1, end);
    if (found?.[0] !== whole) throw new Error(`/${this.source}/ finds ${found?.[0]}, counted ${whole}`);
    return found;
  };
  const names = ["trim", "trimEnd", "includes", "replaceAll", "startsWith", "split", "slice"];
  const methods = names.map((name) => [name, String.prototype[name]]);
  for (const [name, method] of methods) {
    String.prototype[name] = function counted(...given) {
      const result = method.apply(this, given);
      count += name === "slice" ? result.length : this.length;
      return result;
    };
  }
  try {
    read();
  } finally {
    RegExp.prototype.exec = exec;
    for (const [name, method] of methods) String.prototype[name] = method;
  }
  return count;
}

const SAMPLE = [...Array(128).keys()].map((code) => String.fromCharCode(code)).concat("é", "\u2028");
const overlap = (one, two) => one.some((a) => two.some((b) => SAMPLE.some((it) => a(it) && b(it))));

/** The classes that are repeated at one side of a node, and whether the node can be empty. */
function edge(node, side) {
  switch (node.kind) {
    case "char": return { classes: [], isEmpty: false };
    case "group": return edge(node.body, side);
    case "repeat": {
      const own = node.max > 1 && node.body.kind === "char" ? [node.body.is] : edge(node.body, side).classes;
      return { classes: own, isEmpty: node.min === 0 };
    }
    case "either": {
      const all = node.all.map((items) => {
        const classes = [];
        for (const it of side === "end" ? items.toReversed() : items) {
          const own = edge(it, side);
          classes.push(...own.classes);
          if (!own.isEmpty) return { classes, isEmpty: false };
        }
        return { classes, isEmpty: true };
      });
      return { classes: all.flatMap((it) => it.classes), isEmpty: all.some((it) => it.isEmpty) };
    }
    // A look ahead or behind, and the mark of a side, tell two repetitions apart.
    default: return { classes: [], isEmpty: false };
  }
}

function hasTwins(node) {
  if (node.kind === "repeat" || node.kind === "group") {
    const loops = node.kind === "repeat" && node.max > 1 && node.body.kind !== "char";
    return hasTwins(node.body)
      || loops && overlap(edge(node.body, "end").classes, edge(node.body, "begin").classes);
  }
  if (node.kind !== "either") return false;
  return node.all.some((items) => items.some((it, n) => {
    const rest = { kind: "either", all: [items.slice(n + 1)] };
    return hasTwins(it) || overlap(edge(it, "end").classes, edge(rest, "begin").classes);
  }));
}

/** The expressions that were counted, and those among them with two repetitions of one class side by side or in each other. */
export const patterns = () => [...machines.keys()];
export const twins = () => [...machines.values()].filter(({ tree }) => hasTwins(tree)).map(({ source }) => source);
