/** A form of read sessions: the header prefix whose frames are sent, or events. */
export type ReadForm = string

/** Server-Sent Events. No header prefix has this name. */
export const EVENTS: ReadForm = 'event-stream'
