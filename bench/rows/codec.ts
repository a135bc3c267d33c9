import type { Measurement } from '../harness/measurement.ts'

const program = 'codec'

export const codecRows: Readonly<Record<string, Measurement>> = {
  'codec-encode-100': codec('encode', 100),
  'codec-encode-1k': codec('encode', 1_024),
  'codec-decode-100': codec('decode', 100),
  'codec-decode-1k': codec('decode', 1_024),
}

function codec(operation: 'encode' | 'decode', bytes: number): Measurement {
  const side = (implementation: string) => ({
    program,
    side: `${implementation} ${operation}`,
    params: { bytes },
  })
  return {
    work: `${operation} a block of 1,000 × ${bytes} B`,
    each: 'a block',
    usesSources: true,
    ours: side('own'),
    rivals: [
      { against: '`BinaryReader` and `BinaryWriter` of `@bufbuild/protobuf`', contestant: side('library') },
      { against: 'its generated code', contestant: side('generated') },
    ],
  }
}
