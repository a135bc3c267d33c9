/** A rejection of the protocol that no error of the engine has. */
export class DurableStreamsError extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>> | undefined

  constructor(status: number, message: string, headers?: Readonly<Record<string, string>>) {
    super(message)
    this.status = status
    this.headers = headers
  }
}
