/** The server, or what is between, does not speak HTTP/2. Nothing was sent. */
export class NotDuplex extends Error {}
