import assert from 'node:assert/strict'

/** What an app has to pass whose bundler takes headwater apart. */
export const BUNDLE_CHECKS = {
  // Node before 22.15 has no zstd of its own: the codec is a part of headwater that is imported late.
  'zstd body': async (app) => {
    const stream = await app.createStream('zstd')
    const response = await app.request(`/v1/streams/${stream}/records`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'zstd' },
      body: zstdFrame(JSON.stringify({ records: [{ body: 'compressed' }] })),
    })
    assert.equal(response.status, 200, String(await response.bytes()))
    assert.deepEqual(await app.bodies(stream), ['compressed'])
  },
}

/** A frame with one block that is stored as it is (RFC 8878). `text` has at most 255 bytes. */
function zstdFrame(text) {
  const data = Buffer.from(text)
  const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, data.length, 0, 0, 0])
  const isLast = 1
  frame.writeUIntLE((data.length << 3) | isLast, 6, 3)
  return Buffer.concat([frame, data])
}
