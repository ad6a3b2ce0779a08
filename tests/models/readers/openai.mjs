// Reads the stub by the package `openai` of Node: Chat Completions and Responses.
// Arguments: the folder of the package, and the address of the stub.

import { deepStrictEqual } from 'node:assert';
import { createRequire } from 'node:module';
import { inspect } from 'node:util';

const [folder, base] = process.argv.slice(2);
const OpenAI = createRequire(`${folder}/`)('openai').default;

// The last request, and its answer as it is on the wire.
let exchange = {};
async function recorded(url, options) {
    exchange = { request: options.body, answer: '' };
    const response = await fetch(url, options);
    const current = exchange;
    const decoder = new TextDecoder();
    const copied = response.body.pipeThrough(
        new TransformStream({
            transform(chunk, controller) {
                current.answer += decoder.decode(chunk, { stream: true });
                controller.enqueue(chunk);
            },
        }),
    );
    return new Response(copied, response);
}

// A repeated request would change the counters of the script.
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'unused', maxRetries: 0, timeout: 30_000, fetch: recorded });

const parameters = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } };
const functions = ['get_weather', 'get_time'].map((name) => ({ name, parameters }));
const chatTools = functions.map((made) => ({ type: 'function', function: made }));
const tools = functions.map((made) => ({ type: 'function', strict: false, ...made }));
const GREETING = 'Grüß dich.';
const CALLS = [['get_weather', '{"city":"Köln","days":2}'], ['get_time', '{}']];

const messages = (user) => [{ role: 'system', content: 'be brief' }, { role: 'user', content: user }];
const chat = (user, more) => client.chat.completions.create({ model: 'm', messages: messages(user), ...more });
const respond = (user, more) => client.responses.create({ model: 'm', instructions: 'be brief', input: user, ...more });
const chatStream = (user, more) =>
    client.chat.completions.stream({
        model: 'm',
        messages: messages(user),
        stream_options: { include_usage: true },
        ...more,
    });
const responseStream = (user, more) =>
    client.responses.stream({ model: 'm', instructions: 'be brief', input: user, ...more });

function chatText({ choices: [choice], usage }) {
    return [choice.message.content, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens];
}
const chatCalls = (answer) => answer.choices[0].message.tool_calls.map((call) => Object.values(call.function));
const text = (answer) => [answer.output_text, answer.status, answer.usage.input_tokens, answer.usage.output_tokens];
const isCall = (item) => item.type === 'function_call';
const calls = (answer) => answer.output.filter(isCall).map((item) => [item.name, item.arguments]);

async function chatPieces(user) {
    const pieces = [];
    for await (const chunk of await chat(user, { stream: true })) pieces.push(chunk.choices[0]?.delta.content);
    return pieces.filter(Boolean);
}

async function events(user) {
    const kinds = [];
    for await (const event of await respond(user, { stream: true })) kinds.push([event.type, event.delta]);
    return kinds;
}

const DELTA = 'response.output_text.delta';
const pieces = async (user) => (await events(user)).filter(([kind]) => kind === DELTA).map(([, delta]) => delta);

async function chatAfterTools() {
    const asked = (await chat('the weather', { tools: chatTools })).choices[0].message;
    const results = asked.tool_calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'warm' }));
    return chatText(await chat('', { messages: [...messages('the weather'), asked, ...results], tools: chatTools }))[0];
}

async function afterTools() {
    const asked = (await respond('the weather', { tools })).output;
    const result = ({ call_id }) => ({ type: 'function_call_output', call_id, output: 'warm' });
    const input = [{ role: 'user', content: 'the weather' }, ...asked, ...asked.filter(isCall).map(result)];
    return text(await respond(input, { tools }))[0];
}

// The class and the code of the error with which a promise ends.
const raised = (promise) => promise.then(() => 'no error', (error) => [error.constructor.name, error.code]);

let failed = false;
async function equal(check, expected, call) {
    let answer;
    try {
        answer = await call();
        deepStrictEqual(answer, expected);
        console.log(`ok openai-node ${check}`);
    } catch (error) {
        failed = true;
        console.log(`FAILED openai-node ${check}\n  expected ${inspect(expected)}`);
        console.log(`  answer   ${inspect(answer ?? error, { depth: 6 })}`);
        console.log(`  request  ${exchange.request}\n  on the wire ${exchange.answer}`);
    }
}

const schema = { type: 'json_schema', name: 'place', schema: parameters };
const format = { type: 'json_schema', json_schema: { name: 'place', schema: parameters } };
const named = { type: 'function', name: 'get_time' };
const chatNamed = { type: 'function', function: { name: 'get_time' } };

await equal('chat text', [GREETING, 'stop', 3, 4], async () => chatText(await chat('hello')));
await equal('chat pieces', ['Grüß ', 'dich', '.'], () => chatPieces('hello'));
await equal('chat stream', [GREETING, 'stop', 3, 4], async () =>
    chatText(await chatStream('hello').finalChatCompletion()));
await equal('chat tools', CALLS, async () => chatCalls(await chat('weather', { tools: chatTools })));
await equal('chat tools of a stream', CALLS, async () =>
    chatCalls(await chatStream('weather', { tools: chatTools }).finalChatCompletion()));
await equal('chat tool result', 'It is warm.', chatAfterTools);
await equal('chat forced tool', [['get_time', '{}']], async () =>
    chatCalls(await chat('xyzzy', { tools: chatTools, tool_choice: chatNamed })));
await equal('chat structured output', CALLS[0][1], async () =>
    chatText(await chat('place', { response_format: format }))[0]);
await equal('chat rate limit', ['RateLimitError', 'rate_limit_exceeded'], () => raised(chat('busy')));
await equal('chat late error', ['APIError', 'model_error'], () => raised(chatPieces('late')));
await equal('chat cut stream', ['TypeError', undefined], () => raised(chatPieces('cut')));

await equal('responses text', [GREETING, 'completed', 3, 4], async () => text(await respond('hello')));
await equal('responses pieces', ['Grüß ', 'dich', '.'], () => pieces('hello'));
await equal('responses stream', [GREETING, 'completed', 3, 4], async () =>
    text(await responseStream('hello').finalResponse()));
await equal('responses tools', CALLS, async () => calls(await respond('weather', { tools })));
await equal('responses tools of a stream', CALLS, async () =>
    calls(await responseStream('weather', { tools }).finalResponse()));
await equal('responses tool result', 'It is warm.', afterTools);
await equal('responses forced tool', [['get_time', '{}']], async () =>
    calls(await respond('xyzzy', { tools, tool_choice: named })));
await equal('responses structured output', CALLS[0][1], async () =>
    text(await respond('place', { text: { format: schema } }))[0]);
await equal('responses end', 'response.incomplete', async () => (await events('novel')).at(-1)[0]);
await equal('responses late error', ['APIError', 'model_error'], () => raised(events('late')));
await equal('responses rate limit', ['RateLimitError', 'rate_limit_exceeded'], () => raised(respond('busy')));
await equal('responses no rule', ['BadRequestError', 'no_rule'], () => raised(respond('xyzzy')));
process.exit(failed ? 1 : 0);
