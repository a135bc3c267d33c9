import { StorageFailure } from '../../../src/storage/errors.ts'

/**
 * The journals are one chain of objects, `chain/000000000001` and so on, each created only if its number is
 * free. A piece is a group of a journal, or has no data: then it fences earlier writers, or confirms a
 * checkpoint.
 */
export interface PieceHeader {
  /** The number of the opening that wrote it: higher than that of any piece before it. */
  readonly epoch: number
  /** The journal that its data belong to. */
  readonly journal: number
  /** The checkpoint that counts from here on; 0 if there is none. */
  readonly checkpoint: number
  /** Random: tells a writer whether a piece is its own. */
  readonly nonce: bigint
}

export const PIECE_HEADER_BYTES = 28
const MAGIC = 0x31_50_57_48 // HWP1

export const CHAIN = 'chain/'

export function pieceKey(index: number): string {
  return `${CHAIN}${String(index).padStart(12, '0')}`
}

export function pieceIndex(key: string): number | undefined {
  const [, index] = /^chain\/(\d{12})$/.exec(key) ?? []
  return index === undefined ? undefined : Number(index)
}

export function encodePiece({ epoch, journal, checkpoint, nonce }: PieceHeader, data: Uint8Array): Buffer {
  const piece = Buffer.alloc(PIECE_HEADER_BYTES + data.length)
  piece.writeUInt32LE(MAGIC, 0)
  piece.writeUInt32LE(epoch, 4)
  piece.writeUInt32LE(journal, 8)
  piece.writeUInt32LE(checkpoint, 12)
  piece.writeBigUInt64LE(nonce, 16)
  piece.set(data, PIECE_HEADER_BYTES)
  return piece
}

export function decodePieceHeader(key: string, piece: Buffer): PieceHeader {
  if (piece.length < PIECE_HEADER_BYTES || piece.readUInt32LE(0) !== MAGIC) {
    throw new StorageFailure('corrupt', `${key} is damaged at offset 0: it is no piece of a journal`, {
      nothingWritten: true,
    })
  }
  return {
    epoch: piece.readUInt32LE(4),
    journal: piece.readUInt32LE(8),
    checkpoint: piece.readUInt32LE(12),
    nonce: piece.readBigUInt64LE(16),
  }
}
