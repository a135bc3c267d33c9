import { createFileRegistry, type FileRegistry, fromBinary, toJsonString } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { type JsonNode, jsonTreeOf } from './json-text.ts'

/** The types of messages that were loaded. */
export interface ProtobufTypes {
  /** The full names of the messages, such as `shop.Order`. */
  readonly names: readonly string[]
  readonly registry: FileRegistry
}

/**
 * Reads the types of a file descriptor set, as `protoc --descriptor_set_out` and `buf build` write it.
 * Throws.
 */
export function protobufTypesOf(set: Uint8Array): ProtobufTypes {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, set))
  const names = [...registry].flatMap((type) => (type.kind === 'message' ? [type.typeName] : []))
  if (names.length === 0) throw new RangeError('no types')
  return { names, registry }
}

/** A message as JSON; undefined if its type is not known, or the bytes are no such message. */
export function protobufTree(
  bytes: Uint8Array,
  types: ProtobufTypes | undefined,
  type: string,
): JsonNode | undefined {
  const schema = types?.registry.getMessage(type)
  if (schema === undefined) return undefined
  try {
    return jsonTreeOf(toJsonString(schema, fromBinary(schema, bytes), { registry: types!.registry }))
  } catch {
    return undefined
  }
}

/** Bytes as pairs of digits. */
export function hexTextOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ')
}
