import { randomBytes } from 'node:crypto'
import { StorageFailure } from '../../../src/storage/errors.ts'

/**
 * The journals are one chain of objects, `chain/000000000001` and so on, each created only if its number is
 * free. A piece is a group of a journal; or it has no journal. Then it fences earlier writers, without data,
 * or confirms the checkpoint whose key it contains.
 */
export interface PieceHeader {
  /** The number of the journal that its data belong to; 0 if there is none. */
  readonly journal: number
  /** Random: tells a writer whether a piece is its own, and a cache which piece it has. */
  readonly nonce: bigint
}

export const PIECE_HEADER_BYTES = 16
const MAGIC = 0x31_50_57_48 // HWP1

export const CHAIN = 'chain/'

export function pieceKey(index: number): string {
  return CHAIN + digitsOf(index)
}

/** Numbers in keys have so many digits that keys are ordered as their numbers. */
export function digitsOf(number: number): string {
  return String(number).padStart(12, '0')
}

export function pieceIndex(key: string): number | undefined {
  const [, index] = /^chain\/(\d{12})$/.exec(key) ?? []
  return index === undefined ? undefined : Number(index)
}

export function newPieceHeader(journal: number): PieceHeader {
  return { journal, nonce: randomBytes(8).readBigUInt64LE() }
}

export function encodePiece({ journal, nonce }: PieceHeader, data: Uint8Array): Buffer {
  const piece = Buffer.alloc(PIECE_HEADER_BYTES + data.length)
  piece.writeUInt32LE(MAGIC, 0)
  piece.writeUInt32LE(journal, 4)
  piece.writeBigUInt64LE(nonce, 8)
  piece.set(data, PIECE_HEADER_BYTES)
  return piece
}

export function decodePieceHeader(key: string, piece: Buffer): PieceHeader {
  if (piece.length < PIECE_HEADER_BYTES || piece.readUInt32LE(0) !== MAGIC) {
    throw new StorageFailure('corrupt', `${key} is damaged at offset 0: it is no piece of a journal`, {
      nothingWritten: true,
    })
  }
  return { journal: piece.readUInt32LE(4), nonce: piece.readBigUInt64LE(8) }
}
