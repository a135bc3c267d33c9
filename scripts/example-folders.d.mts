/** Writes a folder for each example into a directory. */
export function writeExampleFolders(directory: string): Promise<void>
