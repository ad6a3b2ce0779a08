// Verifies a signed card with npm `@a2a-js/sdk` 1.x.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { load } from './walk.mjs';

const { values } = parseArgs({
  options: { sdk: { type: 'string' }, base: { type: 'string' }, jwks: { type: 'string' } },
});
const { verifyAgentCardSignature } = await load(values.sdk, '.');
const { DefaultAgentCardResolver } = await load(values.sdk, './client');
const { keys } = JSON.parse(readFileSync(values.jwks, 'utf8'));

// The SDK logs each signature that does not match; the log is turned off.
console.debug = () => {};
const verify = verifyAgentCardSignature(async (kid) => keys.find((key) => key.kid === kid));
const accepts = (card) => verify(card).then(() => true, () => false);

const faults = [];
const resolved = await new DefaultAgentCardResolver().resolve(values.base);
const card = await (await fetch(`${values.base}/.well-known/agent-card.json`)).json();
if (!(await accepts(card))) faults.push('the card as it is served does not verify');
// The SDK resolves a pure 1.0 card with security schemes to its own types. Its
// verifier then reads these as JSON and finds no schemes.
const retyped = !('url' in card) && 'securitySchemes' in card;
if (!retyped && !(await accepts(resolved))) faults.push('the card it resolved does not verify');

const others = {
  name: { ...card, name: `${card.name}~` },
  'capabilities.streaming': { ...card, capabilities: { ...card.capabilities, streaming: !card.capabilities.streaming } },
  skills: { ...card, skills: card.skills.slice(1) },
  signatures: {
    ...card,
    signatures: card.signatures.map((one) => ({ ...one, signature: one.signature.split('').reverse().join('') })),
  },
};
for (const [what, other] of Object.entries(others)) {
  if (await accepts(other)) faults.push(`it accepts another ${what}`);
}
const { x, y } = keys[0];
const stranger = verifyAgentCardSignature(async () => ({ ...keys[0], x: y, y: x }));
if (await stranger(card).then(() => true, () => false)) faults.push('it accepts it under another key');

if (faults.length) {
  console.log(faults.join('\n'));
  process.exit(1);
}
