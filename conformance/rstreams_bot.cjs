// A bot with the SDK of RStreams. What it does is the first argument; it prints JSON, one line.
//   load QUEUE FIRST COUNT {options}   writes events with the payloads {number, text}, which come from another queue
//   offload QUEUE                      reads the events behind the checkpoint, prints them, and checkpoints
//   enrich QUEUE OUT                   reads a queue and writes to another
//   lock                               takes a lock, is refused it a second time, and lets it go
const { createRequire } = require("node:module");
const { promisify } = require("node:util");

const { RStreamsSdk } = createRequire(`${process.cwd()}/`)("leo-sdk");
const sdk = new RStreamsSdk();
const [what, ...words] = process.argv.slice(2);

const load = async (queue, first, count, options) => {
    const { size = 10, pause = 0, ...more } = JSON.parse(options ?? "{}");
    const stream = sdk.load("writer", queue, more);
    for (let number = Number(first); number < Number(first) + Number(count); number++) {
        const event = {
            payload: { number, text: "ü".repeat(size) },
            event_source_timestamp: 1_700_000_000_000 + number,
            correlation_id: { source: "elsewhere", start: `z/2026/01/01/00/00/1700000000000-${String(number).padStart(7, "0")}` },
        };
        await new Promise((done) => (stream.write(event) ? done() : stream.once("drain", done)));
        await new Promise((done) => setTimeout(done, pause));
    }
    await promisify((done) => stream.end(done))();
};

const offload = async (queue) => {
    const seen = [];
    await sdk.offloadEvents({
        id: "reader", inQueue: queue, start: undefined,
        transform: (payload, event, done) => {
            seen.push({ eid: event.eid, ...payload });
            done(null, true);
        },
    });
    return seen;
};

const enrich = (queue, out) => sdk.enrichEvents({
    id: "enricher", inQueue: queue, outQueue: out, start: "z/2026",
    transform: (payload, _event, done) => done(null, { ...payload, enriched: true }),
});

const lock = async () => {
    const create = promisify(sdk.bot.createLock), remove = promisify(sdk.bot.removeLock);
    await create("nightly", "run-1", 60_000);
    const refused = await create("nightly", "run-2", 60_000).then(() => false, () => true);
    await remove("nightly", "run-1");
    await create("nightly", "run-3", 60_000);
    return refused;
};

({ load, offload, enrich, lock })[what](...words).then(
    (answer) => process.stdout.write(`${JSON.stringify(answer ?? null)}\n`, () => process.exit(0)),
    (error) => { console.error(error); process.exit(1); });
