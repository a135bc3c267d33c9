import type { StreamPosition } from '../model/position.ts'

/** `{"seq_num":…,"timestamp":…}` (service-interface.md "Stream position"). */
export function positionJson({ seqNum, timestamp }: StreamPosition): string {
  return `{"seq_num":${seqNum},"timestamp":${timestamp}}`
}

/** The answer to a tail check, and the body of a 416. */
export function tailJson(tail: StreamPosition): string {
  return `{"tail":${positionJson(tail)}}`
}

/** The data of a `ping` event; `timestamp` is when it was emitted, in milliseconds. */
export function pingJson(timestamp: number, tail: StreamPosition): string {
  return `{"timestamp":${timestamp},"tail":${positionJson(tail)}}`
}
