import type { BasinInfo, Page, StreamInfo } from '../model/info.ts'
import { dateTimeText } from './date-time.ts'

/** The union of all generations of the API (rulings.md "Basins"). */
export function basinInfoJson(info: BasinInfo): string {
  return JSON.stringify(basinInfoForm(info))
}

export function streamInfoJson(info: StreamInfo): string {
  return JSON.stringify(streamInfoForm(info))
}

export function basinPageJson(page: Page<BasinInfo>): string {
  return JSON.stringify({ basins: page.items.map(basinInfoForm), has_more: page.hasMore })
}

export function streamPageJson(page: Page<StreamInfo>): string {
  return JSON.stringify({ streams: page.items.map(streamInfoForm), has_more: page.hasMore })
}

function basinInfoForm(info: BasinInfo): object {
  return {
    name: info.name,
    scope: info.scope,
    location: info.location,
    state: info.state,
    created_at: dateTimeText(info.createdAt),
    deleted_at: info.deletedAt && dateTimeText(info.deletedAt),
  }
}

function streamInfoForm(info: StreamInfo): object {
  return {
    name: info.name,
    created_at: dateTimeText(info.createdAt),
    deleted_at: info.deletedAt && dateTimeText(info.deletedAt),
    cipher: info.cipher,
  }
}
