const received: MessageEvent<string>[] = []

/** Records the batches of an `EventSource`, across reconnections. */
export function listen(url: string): void {
  new EventSource(url).addEventListener('batch', (event) => received.push(event))
}

/** The bodies of the records so far. */
export function bodies(): string[] {
  return received.flatMap(({ data }) => JSON.parse(data).records.map(({ body }: { body: string }) => body))
}

/** The id of the last event. */
export function lastId(): string {
  return received.at(-1)!.lastEventId
}
