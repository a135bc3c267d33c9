/** Frames as a client sends them that does not use Node's own (RFC 9113). */

const FRAME_TYPES = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  goAway: 7,
  windowUpdate: 8,
}

export const END_STREAM = 1
export const END_HEADERS = 4

export function frame(
  type: keyof typeof FRAME_TYPES,
  flags: number,
  streamId: number,
  payload: readonly number[] | Uint8Array = [],
): Buffer {
  const header = Buffer.alloc(9)
  header.writeUIntBE(payload.length, 0, 3)
  header[3] = FRAME_TYPES[type]
  header[4] = flags
  header.writeUInt32BE(streamId, 5)
  return Buffer.concat([header, Buffer.from(payload)])
}

/** The preface and the first settings of a connection. */
export const OPENING = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame('settings', 0, 0),
])

/** A HEADERS frame that opens a stream, with literal fields. */
export function requestFrame(
  streamId: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  flags = END_HEADERS,
): Buffer {
  const fields = {
    ':method': method,
    ':path': path,
    ':scheme': 'http',
    ':authority': 'localhost',
    ...headers,
  }
  return frame('headers', flags, streamId, Buffer.concat(Object.entries(fields).map(literalField)))
}

/** A field without indexing, whose name and value are shorter than 127 bytes (RFC 7541, 6.2.2). */
function literalField([name, value]: [string, string]): Buffer {
  const text = (part: string) => Buffer.concat([Buffer.from([part.length]), Buffer.from(part)])
  return Buffer.concat([Buffer.from([0]), text(name), text(value)])
}
