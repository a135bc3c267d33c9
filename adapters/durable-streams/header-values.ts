import type { RequestExchange } from '../http/exchange.ts'
import { DurableStreamsError } from './durable-streams-error.ts'

const INTEGER = /^(0|[1-9]\d{0,15})$/

/** Parses a header that is an integer, in decimal digits without leading zeros. Throws 400. */
export function headerIntegerOf(text: string, name: string): number {
  const value = INTEGER.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw new DurableStreamsError(400, `\`${name}\` must be an integer from 0 to 2^53 - 1`)
}

/** Whether a request closes its stream. */
export function isClosing(exchange: RequestExchange): boolean {
  return exchange.header('stream-closed')?.trim().toLowerCase() === 'true'
}
