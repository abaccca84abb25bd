// How a script of ours has the server killed: it asks whoever runs it.
import { createInterface } from "node:readline";

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/// Ends the server as a crash would. Without a time it is back when this returns; with one it goes by itself, so that it
/// happens during a call.
export const crash = async (afterMs = 0) => {
    process.stdout.write(`crash ${afterMs}\n`);
    await answers.next();
};

/// Nothing more is asked for, so nothing keeps the script alive.
export const done = () => process.stdin.destroy();
