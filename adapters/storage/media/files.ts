/**
 * The calls of a file system that {@link directoryMedium} is made of. Tests run it on a simulated disk. All
 * names are in one flat directory. Calls reject with the system's error and its `code`.
 */
export interface Files {
  list(): Promise<string[]>
  /** The length of a file. */
  size(name: string): Promise<number>
  /**
   * `create` creates the file for its owner only, and replaces an existing one, which it never opens.
   * `update` opens an existing file for reading and writing.
   */
  open(name: string, mode: OpenMode): Promise<File>
  rename(from: string, to: string): Promise<void>
  unlink(name: string): Promise<void>
  /** Makes creations, renames and removals durable. */
  syncDirectory(): Promise<void>
  /** Whether the path still leads to the directory that it led to at first. Synchronous, as `isNamed`. */
  isInPlace(): boolean
}

export type OpenMode = 'create' | 'read' | 'update'

export interface File {
  /**
   * Fills the buffer from `position` on. Returns the number of bytes read, which is smaller only at the end
   * of the file: the number itself if the read completed at once, otherwise a promise. Errors reject.
   */
  read(buffer: Uint8Array, position: number): number | Promise<number>
  write(bytes: Uint8Array, position: number): Promise<void>
  truncate(length: number): Promise<void>
  /**
   * Whether the path of the directory leads to the file by this name. Synchronous, because that takes 4 to
   * 6 µs, less than a turn of the event loop.
   */
  isNamed(name: string): boolean
  /** Makes content and length durable. */
  datasync(): Promise<void>
  close(): Promise<void>
}
