// A counter that speaks the host protocol (docs/host-protocol.md) with nothing but the standard library.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
)

type message struct {
	Kind  string          `json:"kind"`
	ID    int             `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	N     int             `json:"n"`
	Bytes []struct {
		Size int `json:"size"`
	} `json:"bytes"`
}

func main() {
	in := bufio.NewReader(os.Stdin)
	count := 0
	fmt.Println(`{"kind":"ready","protocol":1,"calls":["add","fail"]}`)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return // the worker is gone
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		var attached []byte
		for _, part := range m.Bytes {
			data := make([]byte, part.Size)
			if _, err := io.ReadFull(in, data); err != nil {
				return
			}
			attached = data
		}
		switch m.Kind {
		case "init":
			fmt.Printf(`{"kind":"done","id":%d}`+"\n", m.ID)
		case "restore":
			count, _ = strconv.Atoi(string(attached))
			fmt.Printf(`{"kind":"done","id":%d}`+"\n", m.ID)
		case "call":
			var n int
			if json.Unmarshal(m.Input, &n); m.Name == "add" {
				count += n
				fmt.Printf(`{"kind":"done","id":%d,"value":%d}`+"\n", m.ID, count)
				continue
			}
			fmt.Printf(`{"kind":"failed","id":%d,"error":{"code":"asked_for","message":"as asked","retryable":false}}`+"\n", m.ID)
		case "checkpoint":
			state := strconv.Itoa(count)
			fmt.Printf(`{"kind":"done","id":%d,"value":null,"bytes":[{"at":["value"],"size":%d}]}`+"\n%s", m.ID, len(state), state)
		case "ping":
			fmt.Printf(`{"kind":"pong","n":%d}`+"\n", m.N)
		case "cancel", "event", "taken": // nothing here takes long enough
		default:
			fmt.Printf(`{"kind":"done","id":%d}`+"\n", m.ID)
		}
	}
}
