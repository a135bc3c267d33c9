import { type Agent, request } from 'node:http'
import { ERROR_KINDS } from '../../../../src/model/errors.ts'
import {
  type AppendOutcome,
  FAILED,
  NOT_MADE,
  type ReadOutcome,
  type TailOutcome,
  UNKNOWN,
} from '../operations.ts'
import { type AppendCall, contentsOf, hashOfText, type StreamClient } from '../stream-client.ts'

interface Answer {
  readonly status: number
  readonly body: unknown
}

interface JsonPosition {
  readonly seq_num: number
}

export interface JsonRecord {
  readonly headers?: readonly (readonly [string, string])[]
  readonly body?: string
}

export interface JsonSequencedRecord extends JsonRecord, JsonPosition {
  readonly timestamp: number
}

/** The records from a position on; or the tail, if the position is at the tail or beyond it. */
export type Page = { readonly records: readonly JsonSequencedRecord[] } | { readonly tail: number }

/** A client of the wire protocol that sends independent JSON requests and never retries. */
export class HttpClient implements StreamClient {
  readonly #records: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #agent: Agent

  constructor(url: string, basin: string, stream: string, agent: Agent) {
    this.#records = `${url}/v1/streams/${encodeURIComponent(stream)}/records`
    this.#headers = { 'svc-basin': basin }
    this.#agent = agent
  }

  append({ bodies, setFencingToken, ...conditions }: AppendCall): Promise<AppendOutcome> {
    const fence: JsonRecord[] =
      setFencingToken === undefined ? [] : [{ headers: [['', 'fence']], body: setFencingToken }]
    return this.appendRecords([...fence, ...bodies.map((body) => ({ body }))], conditions)
  }

  async appendRecords(
    records: readonly JsonRecord[],
    { matchSeqNum, fencingToken }: Pick<AppendCall, 'matchSeqNum' | 'fencingToken'>,
  ): Promise<AppendOutcome> {
    const input = { records, match_seq_num: matchSeqNum ?? null, fencing_token: fencingToken ?? null }
    const answer = await this.#send('POST', this.#records, JSON.stringify(input))
    return answer === undefined ? UNKNOWN : appendOutcome(answer)
  }

  /** Reads page after page until the service reports the tail. */
  async read(): Promise<ReadOutcome> {
    const hashes: bigint[] = []
    for (;;) {
      const page = await this.page(hashes.length)
      if (page === undefined) return FAILED
      if (!('records' in page)) return contentsOf(hashes, page.tail)
      if (page.records.length === 0) throw new Error('a page without records, and no word of the tail')
      for (const { body = '' } of page.records) hashes.push(hashOfText(body))
    }
  }

  /** Waits at the tail for the next record, and returns no records if there are none. */
  async page(seqNum: number, waitSeconds = 0): Promise<Page | undefined> {
    const wait = waitSeconds === 0 ? '' : `&wait=${waitSeconds}`
    const answer = await this.#send('GET', `${this.#records}?seq_num=${seqNum}${wait}`)
    if (answer?.status === 416) return { tail: (answer.body as { tail: JsonPosition }).tail.seq_num }
    return answer?.status === 200 ? (answer.body as Page) : undefined
  }

  async checkTail(): Promise<TailOutcome> {
    const answer = await this.#send('GET', `${this.#records}/tail`)
    if (answer?.status !== 200) return FAILED
    return { kind: 'tail', tail: (answer.body as { tail: JsonPosition }).tail.seq_num }
  }

  /**
   * Resolves to undefined without a complete response: the outcome is unknown. Does not use `fetch`, which
   * would take half of the time of a campaign.
   */
  #send(method: string, url: string, body = ''): Promise<Answer | undefined> {
    const headers = body === '' ? this.#headers : { ...this.#headers, 'content-type': 'application/json' }
    return new Promise((resolve) => {
      const sent = request(url, { method, headers, agent: this.#agent }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () => {
          resolve(response.complete ? { status: response.statusCode!, body: JSON.parse(text) } : undefined)
        })
        response.on('error', () => resolve(undefined))
      })
      sent.on('error', () => resolve(undefined))
      sent.end(body)
    })
  }
}

function appendOutcome({ status, body }: Answer): AppendOutcome {
  if (status === 200) {
    const { start, end, tail } = body as Record<'start' | 'end' | 'tail', JsonPosition>
    return { kind: 'appended', start: start.seq_num, end: end.seq_num, tail: tail.seq_num }
  }
  if (status === 412) {
    const refusal = body as { seq_num_mismatch?: number; fencing_token_mismatch?: string }
    if (refusal.seq_num_mismatch !== undefined) return { kind: 'refused', seqNum: refusal.seq_num_mismatch }
    return { kind: 'refused', fencingToken: refusal.fencing_token_mismatch! }
  }
  return outcomeOfCode((body as { code: string }).code)
}

/** The code states which errors have no effect (docs/protocol.md "Error codes"). */
export function outcomeOfCode(code: string | undefined): AppendOutcome {
  const isCertain = Object.entries(ERROR_KINDS).some(([name, kind]) => name === code && !kind.mayHaveEffects)
  return isCertain ? NOT_MADE : UNKNOWN
}
