/** Anything that answers a fetch `Request`: the handler of `headwater/http`, or an application that wraps it. */
export type FetchHandler = (request: Request) => Response | Promise<Response>
