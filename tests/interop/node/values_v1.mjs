// Checks that the official JS types read the agent's 1.0 responses as the same values.
// ../exchanges.json has the exchanges.

import { readFileSync } from 'node:fs';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { CALL_TIMEOUT, load } from './walk.mjs';

const option = { type: 'string' };
const { values } = parseArgs({ options: { base: option, binding: option, sdk: option } });
const base = values.base.replace(/\/+$/, '');
const types = await load(values.sdk, '.');
const exchanges = JSON.parse(readFileSync(new URL('../exchanges.json', import.meta.url), 'utf8'));

/** The results of one JSON-RPC call: one, or those of a stream's events. */
async function answers({ method, params }, task) {
  const filled = JSON.parse(JSON.stringify(params).replaceAll('"$task"', JSON.stringify(task)));
  const response = await fetch(base, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'A2A-Version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: filled }),
    signal: AbortSignal.timeout(CALL_TIMEOUT),
  });
  const text = await response.text();
  const streams = response.headers.get('content-type') === 'text/event-stream';
  const lines = streams ? text.split('\n').filter((line) => line.startsWith('data: ')) : [text];
  return lines.map((line) => JSON.parse(streams ? line.slice(6) : line).result);
}

/** The id of the task in a result. */
const taskOf = ({ task, statusUpdate, artifactUpdate, id }) =>
  task?.id ?? statusUpdate?.taskId ?? artifactUpdate?.taskId ?? id;

/** Whether ProtoJSON leaves a member of this value out. */
const isDefault = (value) =>
  value === false || value === 0 || value === '' || (Array.isArray(value) && value.length === 0);

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The first difference; an absent member equals its default. */
function difference(ours, theirs, place = '') {
  if (isObject(ours) && isObject(theirs)) {
    for (const name of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
      const inside = `${place}/${name}`;
      const both = name in ours && name in theirs;
      if (!both && isDefault(ours[name] ?? theirs[name])) continue;
      const found = difference(ours[name], theirs[name], inside);
      if (found) return found;
    }
    return undefined;
  }
  if (Array.isArray(ours) && Array.isArray(theirs) && ours.length === theirs.length) {
    const found = ours.map((one, n) => difference(one, theirs[n], `${place}/${n}`));
    return found.find((one) => one !== undefined);
  }
  if (isDeepStrictEqual(ours, theirs)) return undefined;
  return `${place}: ${JSON.stringify(ours)} is read as ${JSON.stringify(theirs)}`;
}

let read = 0;
let task = '';
const faults = [];
for (const exchange of exchanges) {
  const type = types[exchange.as];
  for (const result of await answers(exchange, task)) {
    task = taskOf(result) ?? task;
    if (exchange.without?.js) continue;
    read += 1;
    const theirs = JSON.parse(JSON.stringify(type.toJSON(type.fromJSON(result))));
    const found = difference(result, theirs);
    if (found) faults.push(`${exchange.method} as ${exchange.as}: ${found}\n    ${JSON.stringify(result)}`);
  }
}
for (const fault of faults) console.log(`  ${fault}`);
console.log(`  ${read} values of 1.0 read`);
process.exit(faults.length > 0 ? 1 : 0);
