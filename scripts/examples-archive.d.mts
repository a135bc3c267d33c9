/** The contents of the files by path, as compressed JSON. */
export function examplesArchive(): Buffer
