const OBJECT_BYTES = 16
const REFERENCE_BYTES = 8

/** The approximate size of a value in bytes. Shared objects are counted each time. */
export function weightOf(value: unknown): number {
  if (typeof value === 'string') return value.length * 2
  if (typeof value !== 'object' || value === null) return 0
  if (ArrayBuffer.isView(value)) return OBJECT_BYTES + value.byteLength
  let bytes = OBJECT_BYTES
  if (value instanceof Map || Array.isArray(value)) {
    for (const item of value) bytes += REFERENCE_BYTES + weightOf(item)
    return bytes
  }
  for (const member of Object.values(value)) bytes += REFERENCE_BYTES + weightOf(member)
  return bytes
}
