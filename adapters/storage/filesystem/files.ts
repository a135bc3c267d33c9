/**
 * The operations on files that the storage is made of, and nothing else, so that tests can run it on a simulated disk. Names are those of one flat directory.
 * What they reject with is the system's error, with its `code`.
 */
export interface Files {
  list(): Promise<string[]>
  /** `create` makes the file or empties it. */
  open(name: string, mode: 'create' | 'read'): Promise<File>
  rename(from: string, to: string): Promise<void>
  /** Gives the file a second name. Where there is a file of that name, it rejects with `EEXIST`. */
  link(from: string, to: string): Promise<void>
  unlink(name: string): Promise<void>
  /** Makes creations, renames, second names and removals durable. */
  syncDirectory(): Promise<void>
}

export interface File {
  size(): Promise<number>
  /** Fills the buffer from `position` on; resolves to how many bytes there were. */
  read(buffer: Uint8Array, position: number): Promise<number>
  write(bytes: Uint8Array, position: number): Promise<void>
  truncate(length: number): Promise<void>
  /** Makes content and length durable. */
  datasync(): Promise<void>
  close(): Promise<void>
}
