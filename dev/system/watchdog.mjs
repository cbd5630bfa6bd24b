// Terminates other processes when its parent process ends. processes.ts starts this program as a separate process. Each line of
// standard input adds a process to the list of watched processes (`+ pid signal`) or removes it from the list (`- pid`).
// Standard input closes when the parent process ends. This program then sends each process in the list the signal from its
// line. After 8 s, processes that still run get SIGKILL. This file is plain JavaScript, so that the program starts quickly and
// has no dependencies.
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

/** @type {Map<number, string>} */
const watched = new Map();

for await (const line of createInterface({ input: process.stdin })) {
  const [change, pid, signal] = line.split(' ');
  if (change === '+') watched.set(Number(pid), signal);
  else watched.delete(Number(pid));
}

for (const [pid, signal] of watched) send(pid, signal);
const end = Date.now() + 8_000;
// Signal 0 only checks whether the process exists.
while (Date.now() < end && [...watched.keys()].some((pid) => send(pid, 0))) await pause(50);
for (const pid of watched.keys()) send(pid, 'SIGKILL');

/** @param {number} pid @param {string | number} signal */
function send(pid, signal) {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
