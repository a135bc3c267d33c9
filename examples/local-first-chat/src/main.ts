import { auditTime, fromEvent, Subject, startWith } from 'rxjs'
import { Alert } from './alert.ts'
import { Chat } from './chat.ts'
import { ConnectionBanner } from './connection-banner.ts'
import { Conversation } from './conversation.ts'
import { newRoomForm } from './new-room.ts'
import { ownNameField } from './own-name-field.ts'
import { ReadPositions } from './read-positions.ts'
import { addressOf, roomAt } from './room-address.ts'
import { RoomList } from './room-list.ts'
import { storage } from './storage.ts'
import { StorageView } from './storage-view.ts'
import { element } from './template.ts'
import { worksOffline } from './works-offline.ts'

const BASIN = 'chat'
const MEASURE_MS = 1_000

const alert = new Alert()

async function start(): Promise<void> {
  const chat = await Chat.open({ local: { storage }, remote: { url: location.origin }, basin: BASIN })
  new ConnectionBanner(chat, alert)
  const positions = new ReadPositions()
  const conversation = new Conversation(positions, alert, leave)
  const storageView = new StorageView()
  const changes = new Subject<void>()
  const rooms = new RoomList(chat, positions, () => changes.next())
  let shown: string | undefined

  function showRooms(): void {
    chat.roomNames$.subscribe({
      next: (names) => rooms.show(names),
      error: (error: unknown) => alert.show(error, showRooms),
    })
  }

  function route(): void {
    const before = shown
    shown = roomAt(location.hash)
    alert.hide()
    element('app').dataset.view = shown === undefined ? 'rooms' : 'room'
    rooms.select(shown)
    if (shown === undefined) {
      conversation.close()
      if (before !== undefined) rooms.focus(before)
    } else {
      conversation.open(chat.room(shown))
      conversation.focus()
    }
    showTitle()
  }

  function leave(error: unknown): void {
    history.replaceState(null, '', '#/')
    route()
    alert.show(error)
  }

  function showTitle(): void {
    const unread = rooms.unread > 0 ? `(${rooms.unread}) ` : ''
    document.title = `${unread}${shown === undefined ? '' : `${shown} · `}Brook`
  }

  changes.subscribe(showTitle)
  changes.pipe(auditTime(MEASURE_MS), startWith(undefined)).subscribe(() => storageView.show())
  newRoomForm(async (name) => {
    location.hash = addressOf(chat.createRoom(name))
  })
  ownNameField(() => {
    positions.changeAll()
    conversation.redraw()
  })
  fromEvent(window, 'hashchange').subscribe(route)
  fromEvent<KeyboardEvent>(document, 'keydown').subscribe((event) => {
    const steps = { ArrowUp: -1, ArrowDown: 1 }[event.key]
    const room = event.altKey && steps !== undefined ? rooms.neighbour(steps) : undefined
    if (room === undefined) return
    event.preventDefault()
    location.hash = addressOf(room)
  })
  showRooms()
  route()
  element('sidebar').inert = false
}

function startOrAlert(): void {
  start().catch((error: unknown) => alert.show(error, startOrAlert))
}

worksOffline()
startOrAlert()
