// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// Random schemas and values, judged by ajv and by test_gateway_schema: pairs.mjs PROGRAM [COUNT] [SEED].
// Without what ajv 8.20 itself gets wrong now and then: contains (an empty array may pass after another
// array did), and the unevaluated keywords (branches that failed count). The draft's suite tries these.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';

const [program, count = 100000, seed = 1] = process.argv.slice(2);
let state = Number(seed);

// xorshift32: the same pairs for the same seed, everywhere.
function random(below) {
  state ^= state << 13; state ^= state >>> 17; state ^= state << 5; state >>>= 0;
  return state % below;
}
const pick = list => list[random(list.length)];
const names = ['a', 'b', 'c', 'ab'];

function value(depth) {
  switch (random(depth > 0 ? 8 : 6)) {
    case 0: return null;
    case 1: return random(2) === 1;
    case 2: return random(7) - 2;
    case 3: return (random(9) - 2) / 2;
    case 4: return pick(['', 'a', 'b', 'ab', 'ä', 'aaa', '1']);
    case 5: return random(4);
    case 6: return Array.from({ length: random(4) }, () => value(depth - 1));
    default: return Object.fromEntries(names.slice(0, random(5)).map(name => [name, value(depth - 1)]));
  }
}

const few = make => Array.from({ length: 1 + random(3) }, make);
const map = depth => Object.fromEntries(few(() => [pick(names), schema(depth)]));
const keywords = {
  type: () => pick(['null', 'boolean', 'object', 'array', 'number', 'integer', 'string',
    ['string', 'integer'], ['array', 'object']]),
  enum: () => few(() => value(1)), const: () => value(1),
  multipleOf: () => pick([1, 2, 0.5]), maximum: () => random(4), minimum: () => random(4) - 1,
  exclusiveMaximum: () => random(4), exclusiveMinimum: () => random(4) - 1,
  maxLength: () => random(3), minLength: () => random(3),
  pattern: () => pick(['^a', 'b$', 'a+b?', '^[a-z]*$', '\\d', 'ä', '(a|b){2}']),
  maxItems: () => random(4), minItems: () => random(3), uniqueItems: () => random(2) === 1,
  maxProperties: () => random(4), minProperties: () => random(3),
  required: () => names.slice(0, random(3)),
  dependentRequired: () => ({ [pick(names)]: [pick(names)] }),
  prefixItems: depth => few(() => schema(depth)), items: schema,
  properties: map, additionalProperties: schema, propertyNames: schema,
  patternProperties: depth => ({ [pick(['^a', 'b$'])]: schema(depth) }),
  allOf: depth => few(() => schema(depth)), anyOf: depth => few(() => schema(depth)),
  oneOf: depth => few(() => schema(depth)), not: schema, dependentSchemas: map,
  $ref: () => pick(['#', '#/$defs/x', '#/$defs/y'])
};

function schema(depth) {
  if (depth <= 0 || random(12) === 0) return random(4) > 0;
  const out = {};
  for (let i = random(4); i >= 0; i--) {
    const name = pick(Object.keys(keywords));
    out[name] = keywords[name](depth - 1);
  }
  if (random(8) === 0) {
    out.if = schema(depth - 1);
    out.then = schema(depth - 1);
    out.else = schema(depth - 1);
  }
  return out;
}

const ajv = new Ajv2020({ strict: false, logger: false });
const verdicts = [];
let stumbles = 0;
const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'pairs-')), 'pairs.jsonl');
const out = fs.openSync(file, 'w');
while (verdicts.length < count) {
  const one = schema(3);
  const tried = typeof one === 'object' ? { ...one, $defs: { x: schema(1), y: schema(2) } } : one;
  const values = Array.from({ length: 5 }, () => value(2));
  let judged = [];
  try {
    const judge = ajv.compile(tried);
    judged = values.map(each => judge(each) ? 'valid' : 'invalid');
  } catch { // a schema that refers to itself for ever, or one that ajv makes bad code of
    stumbles++;
  }
  judged.forEach((verdict, i) => {
    verdicts.push(verdict);
    fs.writeSync(out, JSON.stringify({ schema: tried, value: values[i] }) + '\n');
  });
  ajv.removeSchema();
}
fs.closeSync(out);
const { stdout } = spawnSync(program, [file], { encoding: 'utf8', maxBuffer: 1 << 28 });
const ours = stdout.trim().split('\n');
const pairs = fs.readFileSync(file, 'utf8').trim().split('\n');
const differ = verdicts.flatMap((verdict, i) => verdict === ours[i] ? [] : [`${ours[i]}, ajv ${verdict}: ${pairs[i]}`]);
fs.rmSync(path.dirname(file), { recursive: true });
const valid = verdicts.filter(verdict => verdict === 'valid').length;
console.log(`ajv: ${verdicts.length} pairs, ${valid} valid, ${differ.length} judged otherwise, ajv stumbled over ${stumbles} schemas`);
console.log(differ.slice(0, 5).join('\n'));
process.exit(differ.length > 0 ? 1 : 0);
