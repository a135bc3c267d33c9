import { equalBytes, lossyTextOf, utf8 } from '../model/bytes.ts'
import type { HeadwaterError } from '../model/errors.ts'
import type { Header } from '../model/record.ts'

/** The device and the number that identify a record of an outbox (docs/protocol.md "Origin header"). */
export interface RecordOrigin {
  /** The id of the outbox, and so of the device that the record was appended on. */
  readonly device: string
  /** The number of the record in that outbox. Numbers increase. */
  readonly number: number
}

/** A text record of a synced stream, without a position. */
export interface TextContent {
  /** The headers, without the one that identifies the record. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The content. */
  readonly body: string
}

/** A record of a synced stream in bytes, without a position. */
export interface BytesContent {
  /** The headers, without the one that identifies the record. */
  readonly headers: readonly (readonly [name: Uint8Array, value: Uint8Array])[]
  /** The content. */
  readonly body: Uint8Array
}

/** A JSON record of a synced stream, without a position. */
export interface JsonContent<Value> {
  /** The headers, without the one that identifies the record. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The value, as the schema returns it. */
  readonly value: Value
}

/** A record that is on the server. */
export type ConfirmedRecord<Content = TextContent> = Content & {
  /** False: the record is on the server. */
  readonly isPending: false
  /**
   * Stays the same from pending to confirmed: a key for rows of a list. Unique in the stream, unless another
   * writer repeats the origin of a record.
   */
  readonly key: string
  /** The position in the stream, from 0. */
  readonly seqNum: number
  /** Milliseconds since the Unix epoch unless the writer uses another unit. */
  readonly timestamp: number
  /** The device that appended the record through an outbox; undefined if it was appended otherwise. */
  readonly origin: RecordOrigin | undefined
}

/** A record that is durable on this device and waits for the server. */
export type PendingRecord<Content = TextContent> = Content & {
  /** True: the record waits for the server. */
  readonly isPending: true
  /**
   * Stays the same from pending to confirmed: a key for rows of a list. Keep it on the device: with it,
   * another writer could claim the append.
   */
  readonly key: string
  /** Undefined: the server has not given the record a position. */
  readonly seqNum?: undefined
  /**
   * The timestamp that the record was appended with, by default the time of the append on this device, in
   * milliseconds since the Unix epoch.
   */
  readonly timestamp: number
  /** This device, and the number with which `retry` and `discard` name the record. */
  readonly origin: RecordOrigin
  /** The reason why the record was parked; undefined while it waits. */
  readonly error: HeadwaterError | undefined
}

/** A record of a synced stream: confirmed, or pending. */
export type SyncedRecord<Content = TextContent> = ConfirmedRecord<Content> | PendingRecord<Content>

/** The name of the header that identifies a record on the server (docs/protocol.md "Origin header"). */
export const ORIGIN_HEADER = 'headwater-origin'

/** The size of that header, in metered bytes. */
export const ORIGIN_METERED_BYTES = 64

const NAME = utf8(ORIGIN_HEADER)
const FORM = /^([\w-]{1,64})\/(0|[1-9]\d{0,15})\/([\w-]{1,64})$/

/**
 * The origin of a record with the nonce of its append, which only the device knows until the record is
 * stored. Another writer of the stream cannot forge the origin of a record that is not stored yet.
 */
export interface SecretOrigin extends RecordOrigin {
  readonly nonce: string
}

/** Returns the value of the header: `<device>/<number>/<nonce>`. */
export function originValue({ device, number, nonce }: SecretOrigin): string {
  return `${device}/${number}/${nonce}`
}

/** Returns the header that identifies a record. */
export function originHeader(origin: SecretOrigin): Header {
  return [NAME, utf8(originValue(origin))]
}

/** Returns the origin that the headers of a record name, or undefined if they name none. */
export function originOf(headers: readonly Header[]): SecretOrigin | undefined {
  const [, value] = headers.find(isOriginHeader) ?? []
  const match = value && FORM.exec(lossyTextOf(value))
  return match ? { device: match[1]!, number: Number(match[2]), nonce: match[3]! } : undefined
}

/** Returns the headers without the one that identifies the record. */
export function withoutOrigin(headers: readonly Header[]): readonly Header[] {
  return headers.some(isOriginHeader) ? headers.filter((header) => !isOriginHeader(header)) : headers
}

function isOriginHeader([name]: Header): boolean {
  return equalBytes(name, NAME)
}
