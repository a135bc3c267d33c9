import type { BasinInfo, StreamInfo } from '../../model/info.ts'
import type { BasinDocument, StreamDocument } from '../documents.ts'

export function basinInfo(document: BasinDocument): BasinInfo {
  return {
    name: document.name,
    scope: document.scope,
    location: document.location,
    state: document.deletedAt === null ? 'active' : 'deleting',
    createdAt: new Date(document.createdAt),
    deletedAt: document.deletedAt === null ? null : new Date(document.deletedAt),
  }
}

export function streamInfo(document: StreamDocument): StreamInfo {
  return {
    name: document.name,
    createdAt: new Date(document.createdAt),
    deletedAt: null,
    cipher: document.cipher,
  }
}
